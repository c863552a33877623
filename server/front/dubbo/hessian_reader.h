#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firn::front {

// Reads values of Hessian 2, Dubbo's serialization, from untrusted bytes. After the first fault,
// all calls fail, and fault() returns the reason.
//
// It allocates only the texts that its caller requests, up to a limit. References and objects are
// faults, except in SkipAny; containers nested too deeply are always faults. Each value takes at
// least one byte, so the work is linear in the size of the request.
class HessianReader {
 public:
  static constexpr size_t kDepthMax = 8;    // containers within containers
  static constexpr size_t kItemsMax = 256;  // of one container
  static constexpr size_t kClassesMax = 32;

  // The bytes must outlive it.
  explicit HessianReader(std::string_view bytes) : left_(bytes), size_(bytes.size()) {}

  bool ok() const { return fault_ == nullptr; }
  // A noun phrase, or "" without a fault.
  std::string_view fault() const { return ok() ? std::string_view() : fault_; }
  // Bytes that have been read.
  size_t position() const { return size_ - left_.size(); }

  // Reads a string into `text` as UTF-8; null is an empty text. More than `bytes_max` bytes are a
  // fault.
  bool Text(std::string& text, size_t bytes_max);

  // Reads an int or a long.
  bool Whole(int64_t& number);

  // Begins a list with `items` items, which follow. Null is an empty list.
  bool List(size_t& items);

  // Begins a map. False without a fault: it is null. Before each key and value, NextEntry returns
  // true.
  bool Map();
  bool NextEntry();

  bool Skip() { return SkipValue(false); }
  // Like Skip, but the value may have objects, references, and long containers.
  bool SkipAny() { return SkipValue(true); }

 private:
  struct Open;

  bool SkipValue(bool any);

  bool Fail(const char* fault);
  std::optional<uint8_t> Code();
  bool Drop(size_t bytes);
  std::optional<uint64_t> Number(size_t bytes);

  struct Piece {
    size_t units;
    bool last;
  };
  // The length of a string's next piece in UTF-16 units.
  std::optional<Piece> TextPiece(uint8_t code);
  bool AppendUnits(size_t units, std::string* text, size_t bytes_max);
  std::optional<uint32_t> Unit();

  bool IsText(uint8_t code) const;
  bool DropText(uint8_t code);
  bool DropBinary(uint8_t code);
  bool DropScalar(uint8_t code);
  bool DropType();
  // False without a fault: the code begins no list.
  bool BeginList(uint8_t code, std::optional<size_t>& items, size_t items_max = kItemsMax);
  // Reads the class definitions before a value; the first one begins with `code`. Returns the
  // value's own code.
  std::optional<uint8_t> DropClasses(uint8_t code);
  // False without a fault: the code begins no object. The items are the object's fields.
  bool BeginObject(uint8_t code, std::optional<size_t>& items);

  std::string_view left_;
  const size_t size_;
  const char* fault_ = nullptr;
  uint32_t high_ = 0;   // first UTF-16 unit of a character beyond U+FFFF, until the second is read
  size_t entries_ = 0;  // of the map that is being read
  std::array<uint16_t, kClassesMax> fields_{};  // number of fields of each defined class
  size_t classes_ = 0;
};

}  // namespace firn::front
