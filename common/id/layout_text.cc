#include "common/base/cat.h"
#include "common/base/faults.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/id/layout.h"
#include "common/time/civil_time.h"

namespace firn {
namespace {

constexpr std::string_view kBlanks = " \t\r\n";

// Parses digits without a sign. Returns nullopt for anything else, and for numbers above `max`.
std::optional<int64_t> Number(std::string_view digits, int64_t max) {
  if (digits.starts_with('-')) return std::nullopt;
  return ParseNumberWithin<int64_t>(digits, 0, max);
}

// Returns the text before `mark`, and sets `rest` to the text after it, or "" without a mark.
std::string_view TakeUntil(char mark, std::string_view& rest) {
  const size_t at = rest.find(mark);
  const std::string_view head = rest.substr(0, at);
  rest = at == rest.npos ? std::string_view() : rest.substr(at + 1);
  return head;
}

bool TakeSuffix(std::string_view suffix, std::string_view& text) {
  if (!text.ends_with(suffix)) return false;
  text.remove_suffix(suffix.size());
  return true;
}

}  // namespace

// Parses one layout text, and collects all faults. Used once.
class LayoutParser {
 public:
  Result<Layout> Parse(std::string_view text) {
    for (size_t at = text.find_first_not_of(kBlanks); at != text.npos;) {
      const size_t end = std::min(text.find_first_of(kBlanks, at), text.size());
      ReadToken(text.substr(at, end - at));
      at = text.find_first_not_of(kBlanks, end);
    }
    CheckWhole();
    if (!faults_.empty()) return std::move(faults_).ToStatus();
    return Layout(std::span(fields_.data(), count_), tick_ms_, epoch_);
  }

 private:
  void ReadToken(std::string_view token) {
    std::string_view value = token;
    const std::string_view name = TakeUntil(':', value);
    const std::string quoted = Quoted(token);
    if (name == "epoch") return ReadEpoch(value, quoted);
    const std::optional<FieldKind> kind = FieldKindOf(name);
    if (!kind) return faults_.Add(quoted + " is neither a field of an id nor the epoch");
    bool& seen = seen_[static_cast<size_t>(*kind)];
    if (seen) return faults_.Add(quoted + ": the field is given twice");
    seen = true;
    Field field{*kind};
    if (*kind == FieldKind::kTime) value = ReadTick(value, quoted);
    std::string_view number = value;
    const std::string_view width = TakeUntil('=', number);
    if (!ReadWidth(width, quoted, field)) return;
    if (width.size() != value.size() && !ReadValue(number, quoted, field)) return;
    fields_[count_++] = field;
  }

  bool ReadWidth(std::string_view digits, const std::string& quoted, Field& field) {
    const std::optional<int64_t> width = Number(digits, 64);
    if (!width || *width == 0) {
      widths_known_ = false;
      faults_.Add(quoted + ": a width is a number of bits from 1 to 64");
      return false;
    }
    field.width = static_cast<int>(*width);
    return true;
  }

  bool ReadValue(std::string_view digits, const std::string& quoted, Field& field) {
    const std::optional<int64_t> value = Number(digits, INT64_MAX);
    if (!field.is_const()) {
      faults_.Add(quoted + ": only const fields are given a value");
    } else if (!value || !field.Holds(static_cast<uint64_t>(*value))) {
      faults_.Add(Cat(quoted, ": the value is not in 0..", field.max()));
    } else if (field.kind == FieldKind::kZero && *value != 0) {
      faults_.Add(quoted + ": zero holds 0");
    } else {
      field.value = static_cast<uint64_t>(*value);
      return true;
    }
    widths_known_ = false;
    return false;
  }

  // Reduces "31s" and "39@10ms" to the width, and stores the tick.
  std::string_view ReadTick(std::string_view value, const std::string& quoted) {
    std::string_view tick = value;
    std::string_view width = TakeUntil('@', tick);
    const bool named = width.size() != value.size();
    std::string_view& unit = named ? tick : width;
    int64_t unit_ms = 0;
    if (TakeSuffix("ms", unit)) {
      unit_ms = 1;
    } else if (TakeSuffix("s", unit)) {
      unit_ms = 1000;
    }
    const std::optional<int64_t> count = named ? Number(tick, Layout::kTickMsMax) : 1;
    if (named && unit_ms == 0) {
      faults_.Add(quoted + ": a tick is a number of ms or s");
    } else if (!count || *count == 0 || *count * unit_ms > Layout::kTickMsMax) {
      faults_.Add(Cat(quoted, ": a tick lasts 1 to ", Layout::kTickMsMax, " ms"));
    } else {
      tick_ms_ = *count * std::max(unit_ms, int64_t{1});
    }
    return width;
  }

  void ReadEpoch(std::string_view value, const std::string& quoted) {
    if (epoch_seen_) return faults_.Add(quoted + ": the epoch is given twice");
    epoch_seen_ = true;
    if (const std::optional<int64_t> ms = Number(value, INT64_MAX)) {
      epoch_ = WallMs(*ms);
    } else if (const Result<WallMs> date = ParseDate(value); date.ok()) {
      epoch_ = *date;
    } else if (const Result<WallMs> time = ParseRfc3339(value); time.ok()) {
      epoch_ = *time;
    } else {
      return faults_.Add(quoted + ": an epoch is a date, an RFC 3339 time or a number of ms");
    }
    if (epoch_ < WallMs(0) || epoch_ >= Layout::kEpochEnd) {
      epoch_ = Layout::kDefaultEpoch;
      faults_.Add(quoted + ": the epoch must be in the years 1970 to 2099");
    }
  }

  // Checks all fields together.
  void CheckWhole() {
    for (const FieldKind kind : {FieldKind::kTime, FieldKind::kMachine, FieldKind::kSequence}) {
      if (!seen_[static_cast<size_t>(kind)])
        faults_.Add("no " + std::string(FieldName(kind)) + " field");
    }
    int bits = 0;
    for (size_t i = 0; i < count_; ++i) {
      bits += fields_[i].width;
      if (fields_[i].kind == FieldKind::kMachine) CheckMachine(fields_[i]);
      if (fields_[i].kind == FieldKind::kTime) CheckEnd(fields_[i]);
    }
    if (bits > 64) {
      faults_.Add(Cat("the fields have ", bits, " bits in all; an id has 64"));
    } else if (bits == 64 && widths_known_ && count_ > 0 && !MayHoldSign(fields_[0].kind)) {
      faults_.Add("the highest of 64 bits is the sign: only version or zero may hold it");
    }
  }

  static bool MayHoldSign(FieldKind kind) {
    return kind == FieldKind::kVersion || kind == FieldKind::kZero;
  }

  void CheckMachine(const Field& machine) {
    if (machine.width <= Layout::kMachineBitsMax) return;
    faults_.Add(Cat("machine has ", machine.width, " bits; the registry has slots for at most ",
                    Layout::kMachineBitsMax));
  }

  void CheckEnd(const Field& time) {
    // Divides instead of multiplying: the product may not fit.
    const auto ticks_to_end = static_cast<uint64_t>((kCalendarEnd - epoch_).count() / tick_ms_);
    if (time.max() < ticks_to_end) return;
    faults_.Add(Cat("time has ", time.width,
                    " bits, which last beyond the year 9999; later dates cannot be shown"));
  }

  std::array<Field, Layout::kFieldsMax> fields_{};
  size_t count_ = 0;
  std::array<bool, kFieldKinds> seen_{};
  bool widths_known_ = true;
  int64_t tick_ms_ = 1;
  WallMs epoch_ = Layout::kDefaultEpoch;
  bool epoch_seen_ = false;
  Faults faults_;
};

namespace {

std::string EpochText(WallMs epoch) {
  const std::string text = FormatRfc3339(epoch);
  constexpr std::string_view kMidnight = "T00:00:00.000Z";
  return text.ends_with(kMidnight) ? text.substr(0, text.size() - kMidnight.size()) : text;
}

std::string TickText(int64_t tick_ms) {
  if (tick_ms == 1) return "ms";
  if (tick_ms == 1000) return "s";
  return Cat("@", tick_ms, "ms");
}

}  // namespace

Result<Layout> Layout::Parse(std::string_view text) {
  for (const BuiltInLayouts::Named& built_in : kBuiltInLayouts) {
    if (text == built_in.name) return built_in.layout;
  }
  if (text.size() > kTextMax) {
    return Invalid(Cat("a layout's text has at most ", kTextMax, " characters"));
  }
  if (text.find(':') == text.npos) {
    return Invalid(Quoted(text) + " is neither the name of a layout nor fields such " +
                   "as 'time:41 machine:10 sequence:12'");
  }
  return LayoutParser().Parse(text);
}

std::string Layout::text() const {
  for (const BuiltInLayouts::Named& built_in : kBuiltInLayouts) {
    if (*this == built_in.layout) return std::string(built_in.name);
  }
  std::string text;
  for (const Field& field : fields()) {
    text += FieldName(field.kind);
    text += Cat(":", field.width);
    if (field.kind == FieldKind::kTime) text += TickText(tick_ms_);
    if (field.is_const() && field.kind != FieldKind::kZero) {
      text += Cat("=", field.value);
    }
    text += " ";
  }
  return text + "epoch:" + EpochText(epoch_);
}

}  // namespace firn
