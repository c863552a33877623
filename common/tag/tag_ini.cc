#include "common/tag/tag_ini.h"

#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/cat.h"
#include "common/base/utf8.h"
#include "common/tag/tag_fields.h"

namespace firn {
namespace {

class Parser {
 public:
  // Returns whether to continue: false after the maximum number of tags.
  bool Line(std::string_view text);
  void Fault(std::string what) { faults_.Add(line_, std::move(what)); }
  TagIni Take();

 private:
  void Header(const Result<std::string>& name);
  void EndSection();
  void Setting(const std::string& key, Result<std::string> value);
  void Set(const std::string& key, const std::string& value);
  std::string Where() const {
    return tag_ && !tag_->name.empty() && IsPrintableUtf8(tag_->name) ? "[" + tag_->name + "] "
                                                                      : "";
  }

  int line_ = 0;
  std::vector<TagDefinition> tags_;
  LineFaults faults_;
  std::map<std::string, int> sections_;  // name to line

  std::optional<TagDefinition> tag_;  // the section being read
  std::map<std::string, int> keys_;   // its keys, with their lines
  std::set<std::string> faulty_;      // keys that have a fault already
};

bool Parser::Line(std::string_view text) {
  ++line_;
  IniLine line = ReadIniLine(text);
  switch (line.kind) {
    case IniLine::Kind::kNothing:
      return true;
    case IniLine::Kind::kNeither:
      Fault("neither [tag], nor key = value, nor a comment");
      return true;
    case IniLine::Kind::kSetting:
      Setting(line.key, std::move(line.text));
      return true;
    case IniLine::Kind::kSection:
      break;
  }
  EndSection();
  if (tags_.size() == kTagIniTagsMax) {
    Fault(Cat("more than ", kTagIniTagsMax, " tags"));
    return false;
  }
  Header(line.text);
  return true;
}

void Parser::Header(const Result<std::string>& name) {
  tag_.emplace();
  keys_.clear();
  faulty_.clear();
  keys_["name"] = line_;
  if (!name.ok()) {
    faulty_.insert("name");
    return Fault(name.status().message());
  }
  tag_->name = name.value();
  const auto [first, fresh] = sections_.emplace(tag_->name, line_);
  if (!fresh) Fault(Cat(Where(), "is defined twice, first at line ", first->second));
}

void Parser::Setting(const std::string& key, Result<std::string> value) {
  if (!tag_) return Fault("a setting before the first [tag]");
  if (!IsPrintableUtf8(key)) return Fault(Where() + "a key that is not printable UTF-8");
  const auto [first, fresh] = keys_.emplace(key, line_);
  if (!fresh && key != "name") {
    return Fault(Cat(Where(), key, ": set twice, first at line ", first->second));
  }
  if (value.ok() && IsPrintableUtf8(*value)) return Set(key, *value);
  faulty_.insert(key);
  const std::string why = value.ok() ? "is not printable UTF-8" : value.status().message();
  Fault(Cat(Where(), key, ": ", why));
}

void Parser::Set(const std::string& key, const std::string& value) {
  const TagField* field = FindTagField(key);
  Status status;
  if (field != nullptr) {
    status = value.empty() ? Invalid("has no value") : SetField(*field, value, *tag_);
  } else if (IsOptionKey(key)) {
    tag_->options[key] = value;
  } else if (key == "high") {
    status = Invalid("cannot be set, only servers raise it; use start to raise the next number");
  } else {
    status = Invalid("no such setting");
  }
  if (status.ok()) return;
  faulty_.insert(key);
  Fault(Where() + key + ": " + status.message());
}

// Adds faults of the whole section, at the line of the field if it has one.
void Parser::EndSection() {
  if (!tag_) return;
  for (const TagFault& fault : FaultsOf(*tag_)) {
    if (faulty_.contains(fault.field)) continue;
    const auto line = keys_.find(fault.field);
    faults_.Add(line != keys_.end() ? line->second : keys_["name"],
                Where() + fault.field + ": " + fault.what);
  }
  tags_.push_back(*std::move(tag_));
  tag_.reset();
}

TagIni Parser::Take() {
  EndSection();
  return {std::move(tags_), std::move(faults_).Take()};
}

}  // namespace

TagIni ParseTagIni(std::string_view text) {
  if (text.size() > kTagIniBytesMax) {
    return {{}, {{1, Cat("the file is larger than ", kTagIniBytesMax, " bytes")}}};
  }
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  Parser parser;
  while (!text.empty() && parser.Line(TakeIniLine(text))) {
  }
  return parser.Take();
}

std::string WriteTagIni(const std::vector<TagDefinition>& tags) {
  std::string out;
  for (const TagDefinition& tag : tags) {
    out += (out.empty() ? "" : "\n") + WriteIniSection(tag.name);
    for (const TagField& field : TagFields()) {
      if (!IsDefault(field, tag)) out += WriteIniSetting(field.key, FieldText(field, tag));
    }
    for (const auto& [key, value] : tag.options) out += WriteIniSetting(key, value);
  }
  return out;
}

}  // namespace firn
