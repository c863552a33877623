#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/status.h"

namespace firn {

// A JSON value: null, a boolean, a number, a string, an array, or an object whose members keep
// their order. `Json{{"a", 1}, {"b", {{"c", true}}}}` is an object, array({1, 2}) an array. A
// lookup compares a member's name with all names.
//
// Accessors never fail: they return null, "", false or an empty container if the value has another
// type. Thread-compatible.
class Json {
 public:
  struct Member;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  // Implicit: a member's value is written unchanged. Containers become arrays, maps become objects.
  // NOLINTBEGIN(google-explicit-constructor)
  Json();
  Json(std::nullptr_t) : Json() {}
  Json(double value) : value_(value) {}
  Json(std::string value);
  Json(std::string_view value) : Json(std::string(value)) {}
  Json(const char* value) : Json(std::string(value)) {}
  Json(std::initializer_list<Member> members);
  template <typename T>
  requires std::is_integral_v<T> Json(T value) : value_(StoredAs<T>(value)) {}
  template <typename C>
  requires requires {
    typename C::value_type;
  } &&(!std::is_convertible_v<const C&, std::string_view>)Json(const C& values);
  // NOLINTEND(google-explicit-constructor)
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();

  static Json array(std::initializer_list<Json> items = {});
  static Json object() { return Json(std::initializer_list<Member>()); }

  bool is_null() const { return Is<std::nullptr_t>(); }
  bool is_boolean() const { return Is<bool>(); }
  bool is_string() const { return Is<std::string>(); }
  bool is_array() const { return Is<Array>(); }
  bool is_object() const { return Is<Object>(); }

  bool boolean() const;
  const std::string& text() const;
  // Returns nullopt for anything but a whole number in the type's range.
  std::optional<int64_t> whole() const;
  std::optional<uint64_t> natural() const;

  // Iteration visits the items of an array.
  const Array& items() const;
  const Object& members() const;
  Array::const_iterator begin() const;
  Array::const_iterator end() const;
  size_t size() const;  // of items or members
  bool empty() const { return size() == 0; }

  // Returns the member or item; a null value if there is none.
  const Json& at(std::string_view name) const;
  const Json& at(size_t i) const;
  // Returns null if there is no such member.
  const Json* Find(std::string_view name) const;
  bool contains(std::string_view name) const { return Find(name) != nullptr; }

  // Change an object; a null value becomes an empty object first. [] adds the member if it is
  // missing; AddNew requires that it is missing.
  Json& operator[](std::string_view name);
  Json& AddNew(std::string_view name, Json value);
  void erase(std::string_view name);
  // Change an array; a null value becomes an empty array first.
  Json& push_back(Json item);
  Json& back();  // must not be empty

  // Equal numbers are equal in every type; the order of members does not matter.
  friend bool operator==(const Json& a, const Json& b);
  friend std::ostream& operator<<(std::ostream& out, const Json& json);
  friend std::string JsonText(const Json& json, int indent);

 private:
  class Printer;

  template <typename T>
  using StoredAs = std::conditional_t<std::is_same_v<T, bool>, bool,
                                      std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>>;

  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(value_);
  }
  template <typename T>
  T& Become();

  std::variant<std::nullptr_t, bool, int64_t, uint64_t, double, std::string, Array, Object> value_;
};

struct Json::Member {
  Member(std::string_view its_name, Json its_value) : name(its_name), value(std::move(its_value)) {}

  std::string name;
  Json value;
};

template <typename C>
requires requires {
  typename C::value_type;
} &&(!std::is_convertible_v<const C&, std::string_view>)Json::Json(const C& values)
    : Json(array()) {
  if constexpr (requires { typename C::mapped_type; }) {
    *this = object();
    for (const auto& [name, value] : values) AddNew(name, value);
  } else {
    for (const auto& value : values) push_back(value);
  }
}

// Default limit of the number of values in a document.
inline constexpr size_t kJsonValuesMax = 512;

// Returns the object in `text`. kCorrupt with a reason if the text is longer than `bytes_max`, is
// not JSON or not UTF-8, contains more than the object, is nested too deep, has a duplicate member,
// or a number that no double represents. Members of objects and items of lists count as values, at
// every depth; parsing stops at the first value beyond `values_max`.
//
// A caller that looks up every member of an object must keep `values_max` small.
Result<Json> ParseJson(std::string_view text, size_t bytes_max, size_t values_max = kJsonValuesMax);

// Writes the document on one line or, with `indent`, each member on its own line. Bytes that are
// not UTF-8 become replacement characters.
std::string JsonText(const Json& json, int indent = -1);

// Appends `text` in quotes, as JsonText writes it.
void AppendJsonText(std::string& out, std::string_view text);

}  // namespace firn
