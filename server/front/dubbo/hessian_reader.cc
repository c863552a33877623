#include "server/front/dubbo/hessian_reader.h"

#include <array>
#include <cstdint>
#include <utility>

namespace firn::front {
namespace {

// Codes of the specification: the first byte of a value.
constexpr uint8_t kNull = 'N', kTrue = 'T', kFalse = 'F';
constexpr uint8_t kLong = 'L', kLongAsInt = 0x59, kInt = 'I', kDouble = 'D';
constexpr uint8_t kDoubleZero = 0x5b, kDoubleOne = 0x5c, kDoubleByte = 0x5d, kDoubleShort = 0x5e,
                  kDoubleMill = 0x5f;
constexpr uint8_t kDateMillis = 0x4a, kDateMinutes = 0x4b;
constexpr uint8_t kTextPiece = 'R', kTextLast = 'S', kBinaryPiece = 'A', kBinaryLast = 'B';
constexpr uint8_t kListTyped = 0x55, kListTypedLength = 'V', kList = 0x57, kListLength = 0x58;
constexpr uint8_t kMapTyped = 'M', kMap = 'H', kEnd = 'Z';
constexpr uint8_t kClass = 'C', kObject = 'O', kReference = 0x51;

// Codes of values of a fixed size, with the number of bytes that follow.
constexpr std::array<std::pair<uint8_t, size_t>, 14> kFixed{{{kNull, 0},
                                                             {kTrue, 0},
                                                             {kFalse, 0},
                                                             {kDoubleZero, 0},
                                                             {kDoubleOne, 0},
                                                             {kDoubleByte, 1},
                                                             {kDoubleShort, 2},
                                                             {kDoubleMill, 4},
                                                             {kInt, 4},
                                                             {kLongAsInt, 4},
                                                             {kDateMinutes, 4},
                                                             {kLong, 8},
                                                             {kDouble, 8},
                                                             {kDateMillis, 8}}};

constexpr bool IsBetween(uint8_t code, uint8_t first, uint8_t last) {
  return code >= first && code <= last;
}

constexpr bool IsObject(uint8_t code) {
  return code == kClass || code == kObject || IsBetween(code, 0x60, 0x6f);
}

void AppendUtf8(uint32_t character, std::string& text) {
  const auto add = [&text](uint32_t byte) { text.push_back(static_cast<char>(byte)); };
  if (character < 0x80) return add(character);
  if (character < 0x800) {
    add(0xc0 | character >> 6);
  } else if (character < 0x10000) {
    add(0xe0 | character >> 12);
    add(0x80 | (character >> 6 & 0x3f));
  } else {
    add(0xf0 | character >> 18);
    add(0x80 | (character >> 12 & 0x3f));
    add(0x80 | (character >> 6 & 0x3f));
  }
  add(0x80 | (character & 0x3f));
}

}  // namespace

bool HessianReader::Fail(const char* fault) {
  if (fault_ == nullptr) fault_ = fault;
  left_ = {};
  return false;
}

std::optional<uint8_t> HessianReader::Code() {
  if (left_.empty()) {
    Fail("the end of the request within a value");
    return std::nullopt;
  }
  const auto code = static_cast<uint8_t>(left_.front());
  left_.remove_prefix(1);
  return code;
}

bool HessianReader::Drop(size_t bytes) {
  if (bytes > left_.size()) return Fail("a length beyond the end of the request");
  left_.remove_prefix(bytes);
  return true;
}

std::optional<uint64_t> HessianReader::Number(size_t bytes) {
  if (bytes > left_.size()) {
    Fail("the end of the request within a number");
    return std::nullopt;
  }
  uint64_t number = 0;
  for (size_t i = 0; i < bytes; ++i) number = number << 8 | static_cast<uint8_t>(left_[i]);
  left_.remove_prefix(bytes);
  return number;
}

// --- numbers -------------------------------------------------------------------------------------

bool HessianReader::Whole(int64_t& number) {
  const auto code = Code();
  if (!code) return false;
  // A short form: the code contains a base, and the bytes after it are added.
  struct Short {
    uint8_t first, last, zero;
    size_t bytes;
  };
  static constexpr std::array<Short, 6> kShort{{{0x80, 0xbf, 0x90, 0},
                                                {0xc0, 0xcf, 0xc8, 1},
                                                {0xd0, 0xd7, 0xd4, 2},
                                                {0xd8, 0xef, 0xe0, 0},
                                                {0xf0, 0xff, 0xf8, 1},
                                                {0x38, 0x3f, 0x3c, 2}}};
  for (const Short& form : kShort) {
    if (!IsBetween(*code, form.first, form.last)) continue;
    const auto low = Number(form.bytes);
    if (!low) return false;
    const int64_t base = int64_t{*code} - form.zero;
    number = base * (int64_t{1} << 8 * form.bytes) + static_cast<int64_t>(*low);
    return true;
  }
  if (*code == kInt || *code == kLongAsInt) {
    const auto read = Number(4);
    if (read) number = static_cast<int32_t>(static_cast<uint32_t>(*read));
    return read.has_value();
  }
  if (*code != kLong) return Fail("a value that is neither an int nor a long");
  const auto read = Number(8);
  if (read) number = static_cast<int64_t>(*read);
  return read.has_value();
}

// --- texts ---------------------------------------------------------------------------------------

bool HessianReader::IsText(uint8_t code) const {
  return code <= 0x1f || IsBetween(code, 0x30, 0x33) || code == kTextPiece || code == kTextLast;
}

std::optional<HessianReader::Piece> HessianReader::TextPiece(uint8_t code) {
  if (code <= 0x1f) return Piece{code, true};
  const bool short_form = IsBetween(code, 0x30, 0x33);
  const auto low = Number(short_form ? 1 : 2);
  if (!low) return std::nullopt;
  if (short_form) return Piece{static_cast<size_t>(code - 0x30) << 8 | *low, true};
  return Piece{*low, code == kTextLast};
}

// Reads one UTF-16 unit, which takes one to three bytes.
std::optional<uint32_t> HessianReader::Unit() {
  const auto first = Code();
  if (!first) return std::nullopt;
  if (*first < 0x80) return *first;
  const size_t more = IsBetween(*first, 0xc0, 0xdf) ? 1 : 2;
  uint32_t unit = uint32_t{*first} & (more == 1 ? 0x1fu : 0x0fu);
  if (!IsBetween(*first, 0xc0, 0xef)) {
    Fail("a string with an invalid character");
    return std::nullopt;
  }
  for (size_t i = 0; i < more; ++i) {
    const auto next = Code();
    if (!next) return std::nullopt;
    if ((*next & 0xc0) != 0x80) {
      Fail("a string with an invalid character");
      return std::nullopt;
    }
    unit = unit << 6 | (uint32_t{*next} & 0x3fu);
  }
  return unit;
}

// Null `text`: drops the units.
bool HessianReader::AppendUnits(size_t units, std::string* text, size_t bytes_max) {
  if (units > left_.size()) return Fail("a length beyond the end of the request");
  for (; units > 0; --units) {
    const auto unit = Unit();
    if (!unit) return false;
    if (text == nullptr) continue;
    const bool is_high = *unit >= 0xd800 && *unit < 0xdc00;
    const bool is_low = *unit >= 0xdc00 && *unit < 0xe000;
    if (is_low != (high_ != 0)) return Fail("a string with an unpaired surrogate");
    if (is_high) {
      high_ = *unit;
      continue;
    }
    const uint32_t pair = 0x10000 + ((high_ & 0x3ff) << 10 | (*unit & 0x3ff));
    AppendUtf8(is_low ? pair : *unit, *text);
    high_ = 0;
    if (text->size() > bytes_max) return Fail("a string that is too long");
  }
  return true;
}

bool HessianReader::Text(std::string& text, size_t bytes_max) {
  text.clear();
  high_ = 0;
  auto code = Code();
  if (!code) return false;
  if (*code == kNull) return true;
  for (;;) {
    if (!IsText(*code)) return Fail("a value that is not a string");
    const auto piece = TextPiece(*code);
    if (!piece) return false;
    if (piece->units > bytes_max) return Fail("a string that is too long");
    if (!AppendUnits(piece->units, &text, bytes_max)) return false;
    if (piece->last) break;
    code = Code();
    if (!code) return false;
  }
  return high_ == 0 || Fail("a string with an unpaired surrogate");
}

bool HessianReader::DropText(uint8_t code) {
  for (std::optional<uint8_t> next = code;;) {
    if (!IsText(*next)) return Fail("a string whose next piece is not a string");
    const auto piece = TextPiece(*next);
    if (!piece || !AppendUnits(piece->units, nullptr, 0)) return false;
    if (piece->last) return true;
    next = Code();
    if (!next) return false;
  }
}

bool HessianReader::DropBinary(uint8_t code) {
  for (std::optional<uint8_t> next = code;;) {
    size_t bytes = *next & 0x0f;
    bool last = true;
    if (!IsBetween(*next, 0x20, 0x2f)) {
      const bool short_form = IsBetween(*next, 0x34, 0x37);
      last = short_form || *next == kBinaryLast;
      if (!last && *next != kBinaryPiece) return Fail("bytes whose next piece is not bytes");
      const auto low = Number(short_form ? 1 : 2);
      if (!low) return false;
      bytes = short_form ? static_cast<size_t>(*next - 0x34) << 8 | *low : *low;
    }
    if (!Drop(bytes)) return false;
    if (last) return true;
    next = Code();
    if (!next) return false;
  }
}

// --- containers ----------------------------------------------------------------------------------

// Reads a type: a name, or the number of an earlier one. It is not used.
bool HessianReader::DropType() {
  if (left_.empty()) return Fail("the end of the request within a type");
  const auto code = static_cast<uint8_t>(left_.front());
  if (!IsText(code)) {
    int64_t earlier = 0;
    return Whole(earlier);
  }
  left_.remove_prefix(1);
  return DropText(code);
}

bool HessianReader::BeginList(uint8_t code, std::optional<size_t>& items, size_t items_max) {
  const bool short_form = IsBetween(code, 0x70, 0x7f);
  if (!short_form && !IsBetween(code, kListTyped, kListLength)) return false;
  const bool typed = short_form ? code < 0x78 : code == kListTyped || code == kListTypedLength;
  if (typed && !DropType()) return false;
  if (short_form) {
    items = size_t{code} & 0x07u;
  } else if (code == kListTypedLength || code == kListLength) {
    int64_t length = 0;
    if (!Whole(length)) return false;
    if (length < 0 || length > static_cast<int64_t>(items_max)) {
      return Fail("a list that is too long");
    }
    items = static_cast<size_t>(length);
  }
  return true;
}

bool HessianReader::List(size_t& items) {
  items = 0;
  const auto code = Code();
  if (!code) return false;
  if (*code == kNull) return true;
  std::optional<size_t> length;
  if (!BeginList(*code, length)) return Fail("a value that is not a list");
  // Java always writes the length of an argument list.
  if (!length) return Fail("a list without a length");
  items = *length;
  return true;
}

bool HessianReader::Map() {
  entries_ = 0;
  const auto code = Code();
  if (!code || *code == kNull) return false;
  if (*code != kMap && *code != kMapTyped) return Fail("a value that is not a map");
  return *code == kMap || DropType();
}

bool HessianReader::NextEntry() {
  if (left_.empty()) return Fail("the end of the request within a map");
  if (static_cast<uint8_t>(left_.front()) == kEnd) {
    left_.remove_prefix(1);
    return false;
  }
  return ++entries_ <= kItemsMax || Fail("a map with too many entries");
}

bool HessianReader::DropScalar(uint8_t code) {
  if (IsText(code)) return DropText(code);
  if (IsBetween(code, 0x20, 0x2f) || IsBetween(code, 0x34, 0x37) || code == kBinaryPiece ||
      code == kBinaryLast) {
    return DropBinary(code);
  }
  if (IsBetween(code, 0xc0, 0xcf) || IsBetween(code, 0xf0, 0xff)) return Drop(1);
  if (IsBetween(code, 0xd0, 0xd7) || IsBetween(code, 0x38, 0x3f)) return Drop(2);
  if (IsBetween(code, 0x80, 0xbf) || IsBetween(code, 0xd8, 0xef)) return true;
  for (const auto& [fixed, bytes] : kFixed) {
    if (code == fixed) return Drop(bytes);
  }
  if (code == kReference) return Fail("a reference to an earlier value");
  if (IsObject(code)) return Fail("an object of a class, which is not supported");
  return Fail("a byte that begins no value");
}

std::optional<uint8_t> HessianReader::DropClasses(uint8_t code) {
  for (std::optional<uint8_t> next = code; next; next = Code()) {
    if (*next != kClass) return next;
    int64_t fields = 0;
    if (!DropType() || !Whole(fields)) break;
    const bool fits = fields >= 0 && fields <= static_cast<int64_t>(kItemsMax);
    if (!fits || classes_ == kClassesMax) {
      Fail("too many classes or fields");
      break;
    }
    fields_[classes_++] = static_cast<uint16_t>(fields);
    for (; fields > 0; --fields) {
      if (!DropType()) return std::nullopt;
    }
  }
  return std::nullopt;
}

bool HessianReader::BeginObject(uint8_t code, std::optional<size_t>& items) {
  if (!IsObject(code)) return false;
  int64_t index = code & 0x0f;
  if (code == kObject && !Whole(index)) return false;
  if (index < 0 || index >= static_cast<int64_t>(classes_)) return Fail("an object of no class");
  items = fields_[static_cast<size_t>(index)];
  return true;
}

// A container that is being read.
struct HessianReader::Open {
  std::optional<size_t> items{};  // remaining items; empty: until the end code
  size_t read = 0;
};

bool HessianReader::SkipValue(bool any) {
  const size_t items_max = any ? size_ : kItemsMax;
  std::array<Open, kDepthMax> open;
  size_t depth = 0;
  do {
    if (depth > 0) {
      Open& inner = open[depth - 1];
      const bool at_end = inner.items
                              ? *inner.items == 0
                              : !left_.empty() && static_cast<uint8_t>(left_.front()) == kEnd;
      if (at_end) {
        if (!inner.items) left_.remove_prefix(1);
        --depth;
        continue;
      }
      if (inner.items) --*inner.items;
      if (++inner.read > 2 * items_max) return Fail("a container with too many items");
    }
    std::optional<uint8_t> code = Code();
    if (code && any) code = DropClasses(*code);
    if (!code) return false;
    if (any && *code == kReference) {
      int64_t earlier = 0;
      if (!Whole(earlier)) return false;
      continue;
    }
    Open container;
    if (*code == kMapTyped || *code == kMap) {
      if (*code == kMapTyped && !DropType()) return false;
    } else if (!BeginList(*code, container.items, items_max) &&
               !(any && ok() && BeginObject(*code, container.items))) {
      if (!ok() || !DropScalar(*code)) return false;
      continue;
    }
    if (depth == kDepthMax) return Fail("containers that are nested too deeply");
    open[depth++] = container;
  } while (depth > 0);
  return true;
}

}  // namespace firn::front
