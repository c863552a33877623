#include "common/json/json.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/cat.h"

namespace firn {
namespace {

constexpr size_t kDepthMax = 8;

// Builds the document from the parser's events. The library's own builder compares each new member
// with all earlier ones, and scans a list again at the end of each object in it: it needs 0.1 s for
// a text of 60 KB. This builder does neither, and stops at a limit.
class Builder final : public Json::json_sax_t {
 public:
  explicit Builder(size_t values_max) : values_max_(values_max) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(Json::number_integer_t value) override { return Add(value); }
  bool number_unsigned(Json::number_unsigned_t value) override { return Add(value); }
  bool number_float(Json::number_float_t value, const std::string&) override { return Add(value); }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(Json::binary_t&) override { return Refuse("is not valid JSON"); }

  bool start_object(size_t) override { return Open(Json::object()); }
  bool key(std::string& name) override {
    auto& members = open_.back()->get_ref<Json::object_t&>();
    members.push_back({std::move(name), Json()});
    member_ = &members.back().second;
    return true;
  }
  bool end_object() override {
    repeated_ |= HasRepeated(open_.back()->get_ref<Json::object_t&>());
    open_.pop_back();
    return true;
  }
  bool start_array(size_t) override { return Open(Json::array()); }
  bool end_array() override {
    open_.pop_back();
    return true;
  }
  // Drops the parser's own message, because it quotes the text, which may contain anything.
  bool parse_error(size_t byte, const std::string&,
                   const nlohmann::detail::exception& error) override {
    constexpr int kNumberOverflow = 406;
    return Refuse(error.id == kNumberOverflow ? "has a number that is out of range"
                                              : Cat("is not valid JSON: error at byte ", byte));
  }

  Result<Json> Done() && {
    if (!fault_.empty()) return Corrupt(fault_);
    if (repeated_) return Corrupt("has a duplicate member");
    if (!root_.is_object()) return Corrupt("is not a JSON object");
    return std::move(root_);
  }

 private:
  static bool HasRepeated(const Json::object_t& members) {
    std::vector<std::string_view> names;
    names.reserve(members.size());
    for (const auto& [name, value] : members) names.push_back(name);
    std::sort(names.begin(), names.end());
    return std::adjacent_find(names.begin(), names.end()) != names.end();
  }

  bool Refuse(std::string why) {
    fault_ = std::move(why);
    return false;
  }

  bool Add(Json value) { return Place(std::move(value)) != nullptr; }

  // Pointers to open values stay valid: no sibling is added before they are closed.
  bool Open(Json empty) {
    Json* const placed = Place(std::move(empty));
    if (placed != nullptr) open_.push_back(placed);
    return placed != nullptr;
  }

  // Returns the value's place in the document, or null if it is refused.
  Json* Place(Json value) {
    Json* placed = &root_;
    if (open_.size() > kDepthMax) {
      Refuse(Cat("is nested deeper than ", kDepthMax));
      return nullptr;
    }
    if (!open_.empty() && ++values_ > values_max_) {
      Refuse(Cat("has more than ", values_max_, " values"));
      return nullptr;
    }
    if (!open_.empty() && open_.back()->is_object()) placed = member_;
    if (!open_.empty() && open_.back()->is_array()) {
      placed = &open_.back()->get_ref<Json::array_t&>().emplace_back();
    }
    *placed = std::move(value);
    return placed;
  }

  const size_t values_max_;
  size_t values_ = 0;
  Json root_;
  std::vector<Json*> open_;  // the objects and lists that contain the next value
  Json* member_ = nullptr;   // member of the innermost object that gets the next value
  bool repeated_ = false;
  std::string fault_;
};

bool IsPlain(char c) { return c >= ' ' && c < '\x7f' && c != '"' && c != '\\'; }

}  // namespace

Result<Json> ParseJson(std::string_view text, size_t bytes_max, size_t values_max) {
  if (text.size() > bytes_max) {
    return Corrupt(Cat("has ", text.size(), " bytes, more than ", bytes_max));
  }
  Builder builder(values_max);
  Json::sax_parse(text, &builder);
  return std::move(builder).Done();
}

std::optional<int64_t> WholeNumber(const Json& json) {
  // The library would return a negative number for values above 2^63.
  const bool fits = json.is_number_unsigned() ? json.get<uint64_t>() <= uint64_t{INT64_MAX}
                                              : json.is_number_integer();
  return fits ? std::optional(json.get<int64_t>()) : std::nullopt;
}

std::string JsonText(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

void AppendJsonText(std::string& out, std::string_view text) {
  if (!std::all_of(text.begin(), text.end(), IsPlain)) {
    out += JsonText(text);
    return;
  }
  out += '"';
  out += text;
  out += '"';
}

}  // namespace firn
