#include "registry/cluster/flat_json.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "registry/cluster/json_object.h"

namespace firn {
namespace {

constexpr size_t kFieldsMax = 16;

bool IsControl(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// Receives the parser's events; returns false at the first thing that does not belong.
class FlatReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit FlatReader(std::span<const JsonField> fields) : fields_(fields) {}

  Status Result() const {
    if (!fault_.empty()) return Corrupt(fault_);
    for (size_t i = 0; i < fields_.size(); ++i) {
      if ((seen_ >> i & 1) == 0) {
        return Corrupt("\"" + std::string(fields_[i].name) + "\" is missing");
      }
    }
    return {};
  }

  // Members that were not asked for were seen.
  bool has_others() const { return has_others_; }

  bool start_object(std::size_t) override {
    if (Enters()) return true;
    return ++objects_ == 1 || FieldFault("has the wrong type");
  }
  bool end_object() override {
    Leaves();
    return true;
  }

  bool key(string_t& name) override {
    if (passing_) return true;
    for (size_t i = 0; i < fields_.size(); ++i) {
      if (fields_[i].name != name) continue;
      if (seen_ >> i & 1) return Fault("\"" + name + "\" is there twice");
      seen_ |= 1u << i;
      field_ = &fields_[i];
      return true;
    }
    has_others_ = passing_ = true;
    return true;
  }

  bool string(string_t& value) override {
    if (Passes()) return true;
    if (!Expects(field_ != nullptr && field_->text != nullptr)) return false;
    if (value.size() > static_cast<size_t>(field_->max)) return FieldFault("is too long");
    for (const char c : value) {
      if (IsControl(c)) return FieldFault("has a control character");
    }
    *field_->text = value;
    return true;
  }

  bool number_integer(number_integer_t value) override {
    if (Passes()) return true;
    if (!Expects(field_ != nullptr && field_->number != nullptr)) return false;
    if (value < field_->min || value > field_->max) return FieldFault("is out of range");
    *field_->number = value;
    return true;
  }
  bool number_unsigned(number_unsigned_t value) override {
    if (Passes()) return true;
    if (!Expects(field_ != nullptr && field_->number != nullptr)) return false;
    if (value > static_cast<uint64_t>(INT64_MAX)) return FieldFault("is out of range");
    return number_integer(static_cast<number_integer_t>(value));
  }

  bool boolean(bool value) override {
    if (Passes()) return true;
    if (!Expects(field_ != nullptr && field_->flag != nullptr)) return false;
    *field_->flag = value;
    return true;
  }

  bool null() override { return Passes() || Expects(false); }
  bool number_float(number_float_t, const string_t&) override { return Passes() || Expects(false); }
  bool binary(binary_t&) override { return Expects(false); }
  bool start_array(std::size_t) override { return Enters() || Expects(false); }
  bool end_array() override {
    Leaves();
    return true;
  }
  // The parser's own sentence quotes the text, which may hold anything: not repeated.
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return Fault("it is not JSON, seen at byte " + std::to_string(position));
  }

 private:
  // Whether this value, no object and no list, belongs to a member that is passed over.
  bool Passes() {
    const bool passed = passing_;
    passing_ = passing_ && within_ > 0;
    return passed;
  }
  bool Enters() {
    if (passing_) ++within_;
    return passing_;
  }
  void Leaves() {
    if (passing_ && --within_ == 0) passing_ = false;
  }

  bool Fault(std::string why) {
    fault_ = std::move(why);
    return false;
  }
  bool FieldFault(const char* what) {
    return Fault("\"" + std::string(field_->name) + "\" " + what);
  }
  bool Expects(bool right_type) {
    if (right_type) return true;
    return field_ == nullptr ? Fault("it is not an object") : FieldFault("has the wrong type");
  }

  const std::span<const JsonField> fields_;
  const JsonField* field_ = nullptr;
  uint32_t seen_ = 0;
  int objects_ = 0;
  bool has_others_ = false;
  bool passing_ = false;  // over the value of a member that was not asked for
  int within_ = 0;        // so many objects and lists of it
  std::string fault_;
};

// True when `value` can stand between quotes as it is.
bool IsPlain(std::string_view value) {
  for (const char c : value) {
    if (IsControl(c) || c == '"' || c == '\\' || static_cast<unsigned char>(c) >= 0x80)
      return false;
  }
  return true;
}

std::string Quoted(std::string_view value) {
  std::string clean(value);
  for (char& c : clean) {
    if (IsControl(c)) c = '?';
  }
  return nlohmann::json(clean).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

Status KeepOthers(std::string_view json, std::span<const JsonField> fields, std::string* others) {
  FIRN_ASSIGN(const JsonObject object, ParseJsonObject(json, json.size()));
  std::string kept = OthersOf(object, [fields](std::string_view name) {
    return std::any_of(fields.begin(), fields.end(),
                       [name](const JsonField& field) { return field.name == name; });
  });
  if (kept.size() > kOthersBytesMax) return Corrupt("a later version has added too much to it");
  if (others != nullptr) *others = std::move(kept);
  return {};
}

}  // namespace

Status ReadFlatJson(std::string_view json, size_t bytes_max, std::span<const JsonField> fields,
                    std::string* others) {
  if (fields.size() > kFieldsMax) Die("a flat JSON object has at most 16 fields");
  if (json.empty()) return Corrupt("it is empty");
  if (json.size() > bytes_max) {
    return Corrupt("it has " + std::to_string(json.size()) + " bytes, more than " +
                   std::to_string(bytes_max));
  }
  FlatReader reader(fields);
  // Strict: nothing may follow the object. The result is in the reader, with its reason.
  const bool read = nlohmann::json::sax_parse(json.begin(), json.end(), &reader);
  FIRN_TRY(reader.Result());
  if (!read) return Corrupt("it is not JSON");
  return reader.has_others() ? KeepOthers(json, fields, others) : Status();
}

void FlatJsonWriter::Name(std::string_view name) {
  if (json_.size() > 1) json_ += ',';
  json_.append(1, '"').append(name).append("\":");
}

FlatJsonWriter& FlatJsonWriter::Text(std::string_view name, std::string_view value) {
  Name(name);
  if (IsPlain(value)) {
    json_.append(1, '"').append(value).append(1, '"');
  } else {
    json_ += Quoted(value);
  }
  return *this;
}

FlatJsonWriter& FlatJsonWriter::Number(std::string_view name, int64_t value) {
  Name(name);
  char digits[24];
  json_.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
  return *this;
}

FlatJsonWriter& FlatJsonWriter::Flag(std::string_view name, bool value) {
  Name(name);
  json_ += value ? "true" : "false";
  return *this;
}

FlatJsonWriter& FlatJsonWriter::Others(std::string_view others) {
  if (others.size() <= 2) return *this;
  if (json_.size() > 1) json_ += ',';
  json_.append(others.substr(1, others.size() - 2));  // without its braces
  return *this;
}

std::string FlatJsonWriter::Done() {
  json_ += '}';
  return std::move(json_);
}

}  // namespace firn
