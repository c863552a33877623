#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>

namespace firn::front {

// Appends values in Hessian 2, in the shortest form that every version of Dubbo reads.
class HessianWriter {
 public:
  // `out` must outlive it.
  explicit HessianWriter(std::string& out) : out_(out) {}

  void Null() { out_.push_back('N'); }
  void Int(int32_t value);
  void Long(int64_t value);
  // UTF-8; a byte that is not part of a character becomes '?'.
  void Text(std::string_view text);
  // A java.util.Date.
  void Date(int64_t millis);

  // A list of `items` values, which follow. ListOf includes the name of a Java array type.
  void List(size_t items);
  void ListOf(std::string_view type, size_t items);

  // A map: keys and values follow, then EndMap.
  void BeginMap() { out_.push_back('H'); }
  void EndMap() { out_.push_back('Z'); }

  // The only class of an answer, with the names of its fields; then an object of it, whose values
  // follow.
  void Class(std::string_view name, std::initializer_list<std::string_view> fields);
  void Object() { out_.push_back('\x60'); }

 private:
  void Bytes(uint64_t value, int bytes);

  std::string& out_;
};

}  // namespace firn::front
