#include <optional>

#include "common/base/properties.h"
#include "common/base/quote.h"
#include "common/base/utf8.h"

namespace firn {
namespace {

constexpr std::string_view kBlanks = " \t\f";

bool IsBlank(char c) { return kBlanks.find(c) != kBlanks.npos; }

std::string_view WithoutLeadingBlanks(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlanks), text.size()));
}

// "line 3: why"
Status AtLine(int line, std::string why) {
  return Invalid("line " + std::to_string(line) + ": " + std::move(why));
}

// Cuts bytes into logical lines: comments and blank lines left out, continued lines joined.
class LogicalLines {
 public:
  explicit LogicalLines(std::string_view bytes) : rest_(bytes) {}

  // False at the end. `line` is where `text` begins.
  Result<bool> Next(std::string& text, int& line) {
    text.clear();
    bool goes_on = false;
    while (!rest_.empty()) {
      const std::string_view natural = WithoutLeadingBlanks(TakeNaturalLine());
      // Java takes a line for a comment also after lines of nothing but a backslash.
      const bool comment = text.empty() && IsComment(natural);
      goes_on = !comment && GoesOn(natural);
      if (comment) continue;
      if (text.empty()) line = number_;
      text += natural.substr(0, natural.size() - (goes_on ? 1 : 0));
      if (!goes_on && !text.empty()) return true;
    }
    if (goes_on) return AtLine(number_, "the text ends within a continued line");
    return false;
  }

 private:
  // Up to a line feed, a carriage return, or both.
  std::string_view TakeNaturalLine() {
    ++number_;
    const size_t end = std::min(rest_.find_first_of("\r\n"), rest_.size());
    const std::string_view line = rest_.substr(0, end);
    const size_t ending = rest_.substr(end).starts_with("\r\n") ? 2 : end < rest_.size() ? 1 : 0;
    rest_.remove_prefix(end + ending);
    return line;
  }

  static bool IsComment(std::string_view natural) {
    return natural.starts_with('#') || natural.starts_with('!');
  }

  static bool GoesOn(std::string_view natural) {
    const size_t last = natural.find_last_not_of('\\');
    return (natural.size() - (last == natural.npos ? 0 : last + 1)) % 2 == 1;
  }

  std::string_view rest_;
  int number_ = 0;
};

// Where a logical line's key ends and its value begins.
struct Cut {
  size_t key_end;
  size_t value_begin;
};

Cut CutLine(std::string_view text) {
  size_t key_end = 0;
  while (key_end < text.size() && !IsBlank(text[key_end]) && text[key_end] != '=' &&
         text[key_end] != ':') {
    key_end += text[key_end] == '\\' ? 2u : 1u;  // what follows a backslash separates nothing
  }
  key_end = std::min(key_end, text.size());
  std::string_view value = WithoutLeadingBlanks(text.substr(key_end));
  if (value.starts_with('=') || value.starts_with(':')) {
    value = WithoutLeadingBlanks(value.substr(1));
  }
  return {key_end, text.size() - value.size()};
}

// Undoes the escapes of a key or value; ISO 8859-1 in, UTF-8 out.
class Unescaper {
 public:
  explicit Unescaper(std::string_view text) : rest_(text) {}

  Result<std::string> Run() {
    std::string out;
    while (!rest_.empty()) {
      FIRN_ASSIGN(const uint32_t point, Next());
      if (point == 0) return Invalid("a NUL");
      AppendUtf8(out, point);
    }
    return out;
  }

 private:
  uint32_t TakeByte() {
    const auto byte = static_cast<unsigned char>(rest_[0]);
    rest_.remove_prefix(1);
    return byte;
  }

  Result<uint32_t> Next() {
    const uint32_t byte = TakeByte();
    if (byte != '\\' || rest_.empty()) return byte;
    const uint32_t escaped = TakeByte();
    switch (escaped) {
      case 't':
        return uint32_t{'\t'};
      case 'n':
        return uint32_t{'\n'};
      case 'r':
        return uint32_t{'\r'};
      case 'f':
        return uint32_t{'\f'};
      case 'u':
        return UnicodePoint();
      default:
        return escaped;
    }
  }

  // After "\u": one UTF-16 unit, or a pair of surrogates.
  Result<uint32_t> UnicodePoint() {
    const std::optional<uint32_t> unit = TakeUnit();
    if (!unit) return Invalid("\\u without four hexadecimal digits");
    if (*unit < 0xD800 || *unit > 0xDFFF) return *unit;
    if (*unit < 0xDC00 && rest_.starts_with("\\u")) {
      rest_.remove_prefix(2);
      const std::optional<uint32_t> low = TakeUnit();
      if (low && *low >= 0xDC00 && *low <= 0xDFFF) {
        return 0x10000 + ((*unit - 0xD800) << 10) + (*low - 0xDC00);
      }
    }
    return Invalid("half a surrogate pair");
  }

  std::optional<uint32_t> TakeUnit() {
    if (rest_.size() < 4) return std::nullopt;
    uint32_t unit = 0;
    for (int i = 0; i < 4; ++i) {
      const std::optional<uint32_t> digit = HexDigit(static_cast<char>(TakeByte()));
      if (!digit) return std::nullopt;
      unit = unit << 4 | *digit;
    }
    return unit;
  }

  static std::optional<uint32_t> HexDigit(char c) {
    constexpr std::string_view kHex = "0123456789abcdef0123456789ABCDEF";
    const size_t at = kHex.find(c);
    if (at == kHex.npos) return std::nullopt;
    return static_cast<uint32_t>(at % 16);
  }

  std::string_view rest_;
};

}  // namespace

class PropertiesParser {
 public:
  Status ReadLine(std::string_view text, int line) {
    const Cut cut = CutLine(text);
    FIRN_ASSIGN(std::string key, Unescaper(text.substr(0, cut.key_end)).Run());
    FIRN_ASSIGN(std::string value, Unescaper(text.substr(cut.value_begin)).Run());
    if (const Properties::Entry* before = made_.FindEntry(key)) {
      made_.duplicates_.push_back("line " + std::to_string(line) + ": " + Quoted(key) +
                                  " is already in line " + std::to_string(before->line));
    }
    FIRN_TRY(made_.Set(key, std::move(value)));
    made_.FindEntry(key)->line = line;
    return {};
  }

  Properties Take() { return std::move(made_); }

 private:
  Properties made_;
};

Result<Properties> Properties::Parse(std::string_view bytes) {
  if (bytes.size() > kBytesMax) {
    return Invalid("larger than " + std::to_string(kBytesMax) + " bytes");
  }
  LogicalLines lines(bytes);
  PropertiesParser parser;
  std::string text;
  int line = 0;
  while (true) {
    FIRN_ASSIGN(const bool more, lines.Next(text, line));
    if (!more) return parser.Take();
    if (Status read = parser.ReadLine(text, line); !read.ok()) {
      return AtLine(line, read.message());
    }
  }
}

}  // namespace firn
