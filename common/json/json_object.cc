#include "common/json/json_object.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"

namespace firn {
namespace {

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

}  // namespace

JsonReader::JsonReader(std::string_view json, size_t bytes_max, size_t values_max) {
  Result<Json> object = ParseJson(json, bytes_max, values_max);
  status_ = object.status();
  if (object.ok()) own_ = std::move(*object);
}

JsonReader::JsonReader(const Json& object) : object_(&object) {
  if (!object.is_object()) status_ = Corrupt("is not a JSON object");
}

const Json* JsonReader::Take(std::string_view name) {
  asked_.push_back(name);
  return Find(name);
}

void JsonReader::Fault(std::string_view name, std::string_view what) {
  status_ = Corrupt(Cat("\"", name, "\" ", what));
}

// Returns the member to read, or null after a fault.
const Json* JsonReader::Ask(std::string_view name) {
  if (!status_.ok()) return nullptr;
  asked_.push_back(name);
  const Json* member = Find(name);
  if (member == nullptr) Fault(name, "is missing");
  return member;
}

JsonReader& JsonReader::Text(std::string_view name, std::string& to, size_t bytes_max) {
  const Json* member = Ask(name);
  if (member == nullptr) return *this;
  const std::string& text = member->text();
  if (!member->is_string()) {
    Fault(name, "must be a string");
  } else if (text.size() > bytes_max) {
    Fault(name, "is too long");
  } else if (std::any_of(text.begin(), text.end(), IsControl)) {
    Fault(name, "has a control character");
  } else {
    to = text;
  }
  return *this;
}

JsonReader& JsonReader::Number(std::string_view name, int64_t& to, int64_t min, int64_t max) {
  const Json* member = Ask(name);
  if (member == nullptr) return *this;
  const std::optional<int64_t> number = member->whole();
  if (!number) {
    Fault(name, "is not a whole number of 63 bits");
  } else if (*number < min || *number > max) {
    Fault(name, "is out of range");
  } else {
    to = *number;
  }
  return *this;
}

JsonReader& JsonReader::Flag(std::string_view name, bool& to) {
  const Json* member = Ask(name);
  if (member == nullptr) return *this;
  if (member->is_boolean()) {
    to = member->boolean();
  } else {
    Fault(name, "must be true or false");
  }
  return *this;
}

JsonReader& JsonReader::NumberIfAny(std::string_view name, int64_t& to, int64_t min, int64_t max) {
  return Find(name) == nullptr ? *this : Number(name, to, min, max);
}

JsonReader& JsonReader::FlagIfAny(std::string_view name, bool& to) {
  return Find(name) == nullptr ? *this : Flag(name, to);
}

JsonReader& JsonReader::Others(std::string& to) {
  if (!status_.ok()) return *this;
  Json others = Json::object();
  for (const auto& [name, value] : object_->members()) {
    if (std::find(asked_.begin(), asked_.end(), name) == asked_.end()) others.AddNew(name, value);
  }
  std::string kept = others.empty() ? std::string() : JsonText(others);
  if (kept.size() > kOthersBytesMax) {
    status_ = Corrupt("members that this version does not know are too large");
  } else {
    to = std::move(kept);
  }
  return *this;
}

void JsonWriter::Name(std::string_view name) {
  if (json_.size() > 1) json_ += ',';
  json_.append(1, '"').append(name).append("\":");
}

JsonWriter& JsonWriter::Text(std::string_view name, std::string_view value) {
  Name(name);
  if (std::none_of(value.begin(), value.end(), IsControl)) {
    AppendJsonText(json_, value);
    return *this;
  }
  std::string clean(value);
  std::replace_if(clean.begin(), clean.end(), IsControl, '?');
  AppendJsonText(json_, clean);
  return *this;
}

JsonWriter& JsonWriter::Number(std::string_view name, int64_t value) {
  Name(name);
  json_ += CatPiece(value).text();
  return *this;
}

JsonWriter& JsonWriter::Flag(std::string_view name, bool value) {
  Name(name);
  json_ += value ? "true" : "false";
  return *this;
}

JsonWriter& JsonWriter::Object(std::string_view name, std::string_view object) {
  Name(name);
  json_ += object;
  return *this;
}

JsonWriter& JsonWriter::Others(std::string_view others) {
  if (others.size() <= 2) return *this;
  if (json_.size() > 1) json_ += ',';
  json_.append(others.substr(1, others.size() - 2));  // without its braces
  return *this;
}

std::string JsonWriter::Done() {
  json_ += '}';
  return std::move(json_);
}

}  // namespace firn
