#include "common/text/fields_text.h"

#include <algorithm>
#include <optional>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/time/civil_time.h"

namespace firn {
namespace {

size_t DigitsOf(const Field& field) { return Cat(field.max()).size(); }

void AppendDigits(std::string& out, size_t width, uint64_t number) {
  const std::string digits = Cat(number);
  out.append(width - std::min(width, digits.size()), '0');
  out += digits;
}

// Parses a text from its beginning. After the first mismatch every call fails.
class Digits {
 public:
  explicit Digits(std::string_view text) : rest_(text) {}

  uint64_t Take(size_t width) {
    const std::string_view digits = rest_.substr(0, width);
    const bool plain =
        digits.size() == width && digits.find_first_not_of("0123456789") == std::string_view::npos;
    const std::optional<uint64_t> number =
        plain ? ParseNumber<uint64_t>(digits) : std::optional<uint64_t>();
    fit_ = fit_ && number.has_value();
    rest_.remove_prefix(digits.size());
    return number.value_or(0);
  }
  uint64_t TakeField(const Field& field) {
    fit_ = fit_ && rest_.starts_with('-');
    rest_.remove_prefix(std::min<size_t>(1, rest_.size()));
    return Take(DigitsOf(field));
  }
  bool all_fit() const { return fit_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool fit_ = true;
};

// Returns nullopt for an invalid date or time.
std::optional<WallMs> TakeTime(Digits& digits, bool whole_seconds) {
  const auto take = [&](size_t width) { return static_cast<int>(digits.Take(width)); };
  CivilTime time;
  const int year = take(4), month = take(2), day = take(2);
  time.date = std::chrono::year(year) / month / day;
  time.hour = take(2);
  time.minute = take(2);
  time.second = take(2);
  time.millisecond = whole_seconds ? 0 : take(3);
  const bool shown = time.date.ok() && time.hour < 24 && time.minute < 60 && time.second < 60;
  return shown ? std::optional(FromCivil(time)) : std::nullopt;
}

}  // namespace

FieldsText::FieldsText(const Layout& layout)
    : layout_(layout),
      whole_seconds_(layout.tick_ms() % 1000 == 0 && layout.epoch().ms() % 1000 == 0),
      width_(whole_seconds_ ? 14 : 17) {
  for (const Field& field : layout.fields()) {
    const bool shown = !field.is_fixed() && field.kind != FieldKind::kTime;
    if (shown) width_ += 1 + DigitsOf(field);
  }
}

void FieldsText::AppendTo(std::string& out, int64_t id) const {
  const Result<IdFields> fields = layout_.Unpack(id);
  if (!fields.ok()) {
    out += Cat(id);
    return;
  }
  const CivilTime time = CivilAt(layout_.StartOf(fields->tick));
  AppendDigits(out, 4, static_cast<uint64_t>(int{time.date.year()}));
  for (const unsigned number :
       {unsigned{time.date.month()}, unsigned{time.date.day()}, static_cast<unsigned>(time.hour),
        static_cast<unsigned>(time.minute), static_cast<unsigned>(time.second)}) {
    AppendDigits(out, 2, number);
  }
  if (!whole_seconds_) AppendDigits(out, 3, static_cast<uint64_t>(time.millisecond));
  const auto append = [&out](const Field* field, uint64_t number) {
    if (field == nullptr) return;
    out += '-';
    AppendDigits(out, DigitsOf(*field), number);
  };
  append(&layout_.machine(), fields->machine.value());
  append(&layout_.sequence(), fields->sequence);
  append(layout_.Find(FieldKind::kVersion), fields->version.value_or(0));
  append(layout_.Find(FieldKind::kMethod), fields->method.value_or(0));
}

Result<int64_t> FieldsText::ParseId(std::string_view text) const {
  Digits digits(text);
  const std::optional<WallMs> time = TakeTime(digits, whole_seconds_);
  IdFields fields;
  const uint64_t machine = digits.TakeField(layout_.machine());
  fields.sequence = digits.TakeField(layout_.sequence());
  if (const Field* version = layout_.Find(FieldKind::kVersion)) {
    fields.version = digits.TakeField(*version);
  }
  if (const Field* method = layout_.Find(FieldKind::kMethod)) {
    fields.method = digits.TakeField(*method);
  }
  const Status no = Invalid(Cat(Quoted(text), " is not the time, machine id and sequence of an id ",
                                "of the layout ", layout_.text()));
  if (!time || !digits.all_fit() || !layout_.machine().Holds(machine)) return no;
  fields.machine = MachineId(static_cast<uint32_t>(machine));
  fields.tick = layout_.TickAt(*time);
  const Result<int64_t> id = layout_.Pack(fields);
  // Refuses a time within a tick, because ids have only times of tick starts.
  if (!id.ok() || layout_.StartOf(fields.tick) != *time) return no;
  return *id;
}

}  // namespace firn
