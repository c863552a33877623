#include "common/tag/ini_line.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"

namespace firn {
namespace {

constexpr std::string_view kBlank = " \t";

std::string_view TrimLeft(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}

bool IsComment(std::string_view text) { return text.starts_with(';') || text.starts_with('#'); }

bool IsBlankOrComment(std::string_view text) {
  text = TrimLeft(text);
  return text.empty() || IsComment(text);
}

std::string Quote(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

// Removes a text in double quotes from the front of `rest`.
Result<std::string> TakeQuoted(std::string_view& rest) {
  std::string out;
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return out;
    }
    if (rest[i] == '\\' && ++i < rest.size() && rest[i] != '"' && rest[i] != '\\') {
      return Invalid("inside quotes, a backslash is followed by \\\" or \\\\ only");
    }
    if (i < rest.size()) out += rest[i];
  }
  return Invalid("the closing quote is missing");
}

Result<std::string> ParseValue(std::string_view text) {
  text = Trimmed(text);
  if (text.starts_with('"')) {
    FIRN_ASSIGN(std::string value, TakeQuoted(text));
    if (!IsBlankOrComment(text)) return Invalid("something follows the closing quote");
    return value;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const bool comment = text[i] == ';' && (i == 0 || kBlank.find(text[i - 1]) != kBlank.npos);
    if (comment) return std::string(Trimmed(text.substr(0, i)));
  }
  return std::string(text);
}

// `text` begins with the opening bracket.
Result<std::string> ParseHeader(std::string_view text) {
  std::string_view rest = TrimLeft(text.substr(1));
  std::string name;
  if (rest.starts_with('"')) {
    FIRN_ASSIGN(name, TakeQuoted(rest));
    rest = TrimLeft(rest);
  } else {
    const size_t end = std::min(rest.find(']'), rest.size());
    name = Trimmed(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  if (!rest.starts_with(']')) return Invalid("the closing bracket of [name] is missing");
  if (!IsBlankOrComment(rest.substr(1))) return Invalid("something follows the closing bracket");
  return name;
}

}  // namespace

IniLine ReadIniLine(std::string_view line) {
  using Kind = IniLine::Kind;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  line = Trimmed(line);
  if (line.empty() || IsComment(line)) return {};
  if (line.starts_with('[')) return {.kind = Kind::kSection, .text = ParseHeader(line)};
  const size_t equals = line.find('=');
  if (equals == line.npos) return {.kind = Kind::kNeither};
  return {.kind = Kind::kSetting,
          .key = std::string(Trimmed(line.substr(0, equals))),
          .text = ParseValue(line.substr(equals + 1))};
}

std::string_view TakeIniLine(std::string_view& text) {
  const size_t end = std::min(text.find('\n'), text.size());
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

std::string WriteIniSection(const std::string& name) {
  const Result<std::string> read = ParseHeader("[" + name + "]");
  const bool plain = read.ok() && read.value_or("") == name;
  return "[" + (plain ? name : Quote(name)) + "]\n";
}

std::string WriteIniSetting(std::string_view key, const std::string& value) {
  const Result<std::string> read = ParseValue(value);
  const bool plain = !value.empty() && read.ok() && read.value_or("") == value;
  return std::string(key) + " = " + (plain ? value : Quote(value)) + "\n";
}

void LineFaults::Add(int line, std::string what) {
  if (faults_.size() < kMost) faults_.push_back({line, std::move(what)});
}

std::vector<LineFault> LineFaults::Take() && {
  std::stable_sort(faults_.begin(), faults_.end(),
                   [](const LineFault& a, const LineFault& b) { return a.line < b.line; });
  return std::move(faults_);
}

Status StatusOf(const std::vector<LineFault>& faults) {
  std::string all;
  for (const LineFault& fault : faults) {
    all += Cat((all.empty() ? "line " : "\nline "), fault.line, ": ", fault.what);
  }
  return faults.empty() ? Status() : Invalid(std::move(all));
}

}  // namespace firn
