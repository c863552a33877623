#include "common/tag_ini.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/tag_fields.h"
#include "common/utf8.h"

namespace firn {
namespace {

constexpr std::string_view kBlank = " \t";

std::string_view TrimLeft(std::string_view text) {
  return text.substr(std::min(text.find_first_not_of(kBlank), text.size()));
}

std::string_view Trim(std::string_view text) {
  text = TrimLeft(text);
  return text.substr(0, text.find_last_not_of(kBlank) + 1);
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

// Takes a text in double quotes off the front of `rest`.
Result<std::string> TakeQuoted(std::string_view& rest) {
  std::string out;
  for (size_t i = 1; i < rest.size(); ++i) {
    if (rest[i] == '"') {
      rest.remove_prefix(i + 1);
      return out;
    }
    if (rest[i] == '\\' && ++i < rest.size() && rest[i] != '"' && rest[i] != '\\') {
      return Invalid("only \\\" and \\\\ are known inside quotes");
    }
    if (i < rest.size()) out += rest[i];
  }
  return Invalid("the closing quote is missing");
}

Result<std::string> ParseValue(std::string_view text) {
  text = Trim(text);
  if (text.starts_with('"')) {
    FIRN_ASSIGN(std::string value, TakeQuoted(text));
    if (!IsBlankOrComment(text)) return Invalid("something follows the closing quote");
    return value;
  }
  for (size_t i = 0; i < text.size(); ++i) {
    const bool comment = text[i] == ';' && (i == 0 || kBlank.find(text[i - 1]) != kBlank.npos);
    if (comment) return std::string(Trim(text.substr(0, i)));
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
    name = Trim(rest.substr(0, end));
    rest.remove_prefix(end);
  }
  if (!rest.starts_with(']')) return Invalid("the closing bracket of [tag] is missing");
  if (!IsBlankOrComment(rest.substr(1))) return Invalid("something follows the closing bracket");
  return name;
}

class Parser {
 public:
  // Whether to go on: not beyond the last tag that is allowed.
  bool Line(std::string_view line);
  void Fault(std::string what) { FaultAt(line_, std::move(what)); }
  TagIni Take();

 private:
  void Header(std::string_view line);
  void EndSection();
  void Setting(std::string_view line);
  void Set(const std::string& key, const std::string& value);
  void FaultAt(int line, std::string what) {
    if (faults_.size() < kTagIniFaultsMax) faults_.push_back({line, std::move(what)});
  }
  std::string Where() const {
    return tag_ && !tag_->name.empty() && IsPrintableUtf8(tag_->name) ? "[" + tag_->name + "] "
                                                                      : "";
  }

  int line_ = 0;
  std::vector<TagDefinition> tags_;
  std::vector<LineFault> faults_;
  std::map<std::string, int> sections_;  // name to line

  std::optional<TagDefinition> tag_;  // the section being read
  std::map<std::string, int> keys_;   // its keys, each with its line
  std::set<std::string> faulty_;      // keys that have a fault already
};

bool Parser::Line(std::string_view line) {
  ++line_;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  line = Trim(line);
  if (line.empty() || IsComment(line)) return true;
  if (!line.starts_with('[')) return Setting(line), true;
  EndSection();
  if (tags_.size() == kTagIniTagsMax) {
    Fault("more than " + std::to_string(kTagIniTagsMax) + " tags");
    return false;
  }
  Header(line);
  return true;
}

void Parser::Header(std::string_view line) {
  Result<std::string> name = ParseHeader(line);
  tag_.emplace();
  keys_.clear();
  faulty_.clear();
  keys_["name"] = line_;
  if (!name.ok()) {
    faulty_.insert("name");
    return Fault(name.status().message());
  }
  tag_->name = *name;
  const auto [first, fresh] = sections_.emplace(*name, line_);
  if (!fresh) Fault(Where() + "is defined twice, first at line " + std::to_string(first->second));
}

void Parser::Setting(std::string_view line) {
  const size_t equals = line.find('=');
  if (equals == line.npos) return Fault("neither [tag], nor key = value, nor a comment");
  if (!tag_) return Fault("a setting before the first [tag]");
  const std::string key(Trim(line.substr(0, equals)));
  if (!IsPrintableUtf8(key)) return Fault(Where() + "a key that is not printable UTF-8");
  const auto [first, fresh] = keys_.emplace(key, line_);
  if (!fresh && key != "name") {
    return Fault(Where() + key + ": set twice, first at line " + std::to_string(first->second));
  }
  Result<std::string> value = ParseValue(line.substr(equals + 1));
  if (value.ok() && !IsPrintableUtf8(*value)) value = Invalid("is not printable UTF-8");
  if (value.ok()) return Set(key, *value);
  faulty_.insert(key);
  Fault(Where() + key + ": " + value.status().message());
}

void Parser::Set(const std::string& key, const std::string& value) {
  const TagField* field = FindTagField(key);
  Status status;
  if (field != nullptr) {
    status = value.empty() ? Invalid("has no value") : SetField(*field, value, *tag_);
  } else if (IsOptionKey(key)) {
    tag_->options[key] = value;
  } else if (key == "high") {
    status = Invalid("moved by ledger writes only; `start` raises where numbers begin");
  } else {
    status = Invalid("no such setting");
  }
  if (status.ok()) return;
  faulty_.insert(key);
  Fault(Where() + key + ": " + status.message());
}

// What is wrong with the section as a whole goes to the line of the field, where it has one.
void Parser::EndSection() {
  if (!tag_) return;
  for (const TagFault& fault : FaultsOf(*tag_)) {
    if (faulty_.contains(fault.field)) continue;
    const auto line = keys_.find(fault.field);
    FaultAt(line != keys_.end() ? line->second : keys_["name"],
            Where() + fault.field + ": " + fault.what);
  }
  tags_.push_back(*std::move(tag_));
  tag_.reset();
}

TagIni Parser::Take() {
  EndSection();
  std::stable_sort(faults_.begin(), faults_.end(),
                   [](const LineFault& a, const LineFault& b) { return a.line < b.line; });
  return {std::move(tags_), std::move(faults_)};
}

void WriteSetting(std::string_view key, const std::string& value, std::string& out) {
  const Result<std::string> read = ParseValue(value);
  const bool plain = !value.empty() && read.ok() && *read == value;
  out += std::string(key) + " = " + (plain ? value : Quote(value)) + "\n";
}

}  // namespace

Status TagIni::status() const {
  std::string all;
  for (const LineFault& fault : faults) {
    all += (all.empty() ? "line " : "\nline ") + std::to_string(fault.line) + ": " + fault.what;
  }
  return faults.empty() ? Status() : Invalid(std::move(all));
}

TagIni ParseTagIni(std::string_view text) {
  if (text.size() > kTagIniBytesMax) {
    return {{}, {{1, "the file is larger than " + std::to_string(kTagIniBytesMax) + " bytes"}}};
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Parser parser;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    if (!parser.Line(text.substr(0, end))) break;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parser.Take();
}

std::string WriteTagIni(const std::vector<TagDefinition>& tags) {
  std::string out;
  for (const TagDefinition& tag : tags) {
    const Result<std::string> read = ParseHeader("[" + tag.name + "]");
    const bool plain = read.ok() && *read == tag.name;
    out += (out.empty() ? "[" : "\n[") + (plain ? tag.name : Quote(tag.name)) + "]\n";
    for (const TagField& field : TagFields()) {
      if (!IsDefault(field, tag)) WriteSetting(field.key, FieldText(field, tag), out);
    }
    for (const auto& [key, value] : tag.options) WriteSetting(key, value, out);
  }
  return out;
}

}  // namespace firn
