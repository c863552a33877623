#include "common/json/json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <ostream>
#include <utility>

#include <nlohmann/json.hpp>

#include "common/base/cat.h"

namespace firn {
namespace {

constexpr size_t kDepthMax = 8;

// Builds the document from the parser's events. The library's own builder compares each new member
// with all earlier ones, and scans a list again at the end of each object in it: it needs 0.1 s for
// a text of 60 KB. This builder does neither, and stops at a limit.
class Builder final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit Builder(size_t values_max) : values_max_(values_max) {}

  bool null() override { return Add(nullptr); }
  bool boolean(bool value) override { return Add(value); }
  bool number_integer(int64_t value) override { return Add(value); }
  bool number_unsigned(uint64_t value) override { return Add(value); }
  bool number_float(double value, const std::string&) override { return Add(value); }
  bool string(std::string& value) override { return Add(std::move(value)); }
  bool binary(nlohmann::json::binary_t&) override { return Refuse("is not valid JSON"); }

  bool start_object(size_t) override { return Open(Json::object()); }
  bool key(std::string& name) override {
    member_ = &open_.back()->AddNew(name, nullptr);
    return true;
  }
  bool end_object() override {
    repeated_ |= HasRepeated(open_.back()->members());
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
  static bool HasRepeated(const Json::Object& members) {
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
    if (!open_.empty() && open_.back()->is_array()) placed = &open_.back()->push_back(nullptr);
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

template <typename T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

template <typename T>
bool Same(const T& a, const T& b) {
  return a == b;
}
bool Same(const Json::Object& a, const Json::Object& b) {
  const auto order = [](const Json::Object& members) {
    std::vector<const Json::Member*> sorted;
    for (const Json::Member& one : members) sorted.push_back(&one);
    std::ranges::sort(sorted, {},
                      [](const Json::Member* one) -> const std::string& { return one->name; });
    return sorted;
  };
  return std::ranges::equal(order(a), order(b), [](const Json::Member* x, const Json::Member* y) {
    return x->name == y->name && x->value == y->value;
  });
}
template <typename A, typename B>
bool Same(const A& a, const B& b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B> && kIsNumber<A> && kIsNumber<B>) {
    return std::cmp_equal(a, b);
  } else if constexpr (kIsNumber<A> && kIsNumber<B>) {
    return static_cast<double>(a) == static_cast<double>(b);
  } else {
    return false;
  }
}

const Json& Null() {
  static const Json kNull;
  return kNull;
}

// Writes it like the library: 1.0, 1e+20, and null if it is not finite.
void AppendNumber(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 64> text;
  const char* const end = nlohmann::detail::to_chars(text.data(), text.data() + text.size(), value);
  out.append(text.data(), static_cast<size_t>(end - text.data()));
}

}  // namespace

// --- values --------------------------------------------------------------------------------------

Json::Json() = default;
Json::Json(std::string value) : value_(std::move(value)) {}
Json::Json(std::initializer_list<Member> members) : value_(Object(members)) {}
Json::Json(const Json&) = default;
Json::Json(Json&&) noexcept = default;
Json& Json::operator=(const Json&) = default;
Json& Json::operator=(Json&&) noexcept = default;
Json::~Json() = default;

Json Json::array(std::initializer_list<Json> items) {
  Json json;
  json.value_ = Array(items);
  return json;
}

bool Json::boolean() const {
  const bool* const found = std::get_if<bool>(&value_);
  return found != nullptr && *found;
}

const std::string& Json::text() const {
  static const std::string kNone;
  const auto* const found = std::get_if<std::string>(&value_);
  return found == nullptr ? kNone : *found;
}

std::optional<int64_t> Json::whole() const {
  if (const auto* const found = std::get_if<int64_t>(&value_)) return *found;
  const auto* const found = std::get_if<uint64_t>(&value_);
  const bool fits = found != nullptr && std::in_range<int64_t>(*found);
  return fits ? std::optional(static_cast<int64_t>(*found)) : std::nullopt;
}

std::optional<uint64_t> Json::natural() const {
  if (const auto* const found = std::get_if<uint64_t>(&value_)) return *found;
  const auto* const found = std::get_if<int64_t>(&value_);
  const bool fits = found != nullptr && *found >= 0;
  return fits ? std::optional(static_cast<uint64_t>(*found)) : std::nullopt;
}

const Json::Array& Json::items() const {
  static const Array kNone;
  const auto* const found = std::get_if<Array>(&value_);
  return found == nullptr ? kNone : *found;
}

const Json::Object& Json::members() const {
  static const Object kNone;
  const auto* const found = std::get_if<Object>(&value_);
  return found == nullptr ? kNone : *found;
}

Json::Array::const_iterator Json::begin() const { return items().begin(); }
Json::Array::const_iterator Json::end() const { return items().end(); }
size_t Json::size() const { return items().size() + members().size(); }

const Json& Json::at(std::string_view name) const {
  const Json* const found = Find(name);
  return found == nullptr ? Null() : *found;
}

const Json& Json::at(size_t i) const { return i < items().size() ? items()[i] : Null(); }

const Json* Json::Find(std::string_view name) const {
  for (const Member& one : members()) {
    if (one.name == name) return &one.value;
  }
  return nullptr;
}

template <typename T>
T& Json::Become() {
  if (is_null()) value_.emplace<T>();
  if (!Is<T>()) Die("a JSON value is changed as one of another type");
  return std::get<T>(value_);
}

Json& Json::operator[](std::string_view name) {
  for (Member& one : Become<Object>()) {
    if (one.name == name) return one.value;
  }
  return AddNew(name, nullptr);
}

Json& Json::AddNew(std::string_view name, Json value) {
  return Become<Object>().emplace_back(name, std::move(value)).value;
}

void Json::erase(std::string_view name) {
  std::erase_if(Become<Object>(), [name](const Member& one) { return one.name == name; });
}

Json& Json::push_back(Json item) { return Become<Array>().emplace_back(std::move(item)); }
Json& Json::back() { return Become<Array>().back(); }

bool operator==(const Json& a, const Json& b) {
  return std::visit([](const auto& x, const auto& y) { return Same(x, y); }, a.value_, b.value_);
}

std::ostream& operator<<(std::ostream& out, const Json& json) { return out << JsonText(json); }

// --- text ----------------------------------------------------------------------------------------

Result<Json> ParseJson(std::string_view text, size_t bytes_max, size_t values_max) {
  if (text.size() > bytes_max) {
    return Corrupt(Cat("has ", text.size(), " bytes, more than ", bytes_max));
  }
  Builder builder(values_max);
  nlohmann::json::sax_parse(text, &builder);
  return std::move(builder).Done();
}

// Writes values as text, at the end of `out`.
class Json::Printer {
 public:
  Printer(std::string& out, int indent) : out_(out), indent_(indent) {}

  void operator()(std::nullptr_t) { out_ += "null"; }
  void operator()(bool value) { out_ += value ? "true" : "false"; }
  void operator()(int64_t value) { out_ += CatPiece(value).text(); }
  void operator()(uint64_t value) { out_ += CatPiece(value).text(); }
  void operator()(double value) { AppendNumber(out_, value); }
  void operator()(const std::string& value) { AppendJsonText(out_, value); }
  void operator()(const Array& items) {
    Write('[', items, ']', [this](const Json& item) { std::visit(*this, item.value_); });
  }
  void operator()(const Object& members) {
    Write('{', members, '}', [this](const Member& member) {
      AppendJsonText(out_, member.name);
      out_ += indent_ < 0 ? ":" : ": ";
      std::visit(*this, member.value.value_);
    });
  }

 private:
  template <typename List, typename Each>
  void Write(char open, const List& list, char close, const Each& each) {
    out_ += open;
    ++level_;
    for (const auto& one : list) {
      if (&one != list.data()) out_ += ',';
      BreakLine();
      each(one);
    }
    --level_;
    if (!list.empty()) BreakLine();
    out_ += close;
  }

  void BreakLine() {
    if (indent_ >= 0) out_.append(1, '\n').append(static_cast<size_t>(indent_ * level_), ' ');
  }

  std::string& out_;
  const int indent_;
  int level_ = 0;
};

std::string JsonText(const Json& json, int indent) {
  std::string text;
  std::visit(Json::Printer(text, indent), json.value_);
  return text;
}

void AppendJsonText(std::string& out, std::string_view text) {
  if (std::all_of(text.begin(), text.end(), IsPlain)) {
    out.append(1, '"').append(text).append(1, '"');
  } else {
    out += nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }
}

}  // namespace firn
