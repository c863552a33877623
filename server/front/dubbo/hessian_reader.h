#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace firn::front {

// Reads values of Hessian 2, Dubbo's serialization, from untrusted bytes. The first fault ends it:
// every later call fails, and fault() says why.
//
// It allocates only what its caller asks for: a text of limited length. It follows no reference and
// creates no object: in a value that is read, both are faults, and so are containers that are
// nested too deeply. Each value takes at least one byte, so the work is linear in the length of the
// request.
class HessianReader {
 public:
  static constexpr size_t kDepthMax = 8;    // containers within containers
  static constexpr size_t kItemsMax = 256;  // of one container
  static constexpr size_t kClassesMax = 32;

  // The bytes must outlive it.
  explicit HessianReader(std::string_view bytes) : left_(bytes), size_(bytes.size()) {}

  bool ok() const { return fault_ == nullptr; }
  // A noun phrase; "" while there is no fault.
  std::string_view fault() const { return ok() ? std::string_view() : fault_; }
  // Bytes that have been read.
  size_t position() const { return size_ - left_.size(); }

  // Reads a string into `text` as UTF-8; a null is an empty text. More than `bytes_max` bytes are a
  // fault.
  bool Text(std::string& text, size_t bytes_max);

  // Reads an int or a long.
  bool Whole(int64_t& number);

  // Begins a list; its `items` follow. A null is an empty list.
  bool List(size_t& items);

  // Begins a map. False without a fault: it is null. Keys and values follow while NextEntry is
  // true.
  bool Map();
  bool NextEntry();

  // Reads any value and drops it.
  bool Skip() { return SkipValue(false); }
  // The same, also of a value with objects, references, and long containers.
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
  // The length of a string's next piece, counted in UTF-16 units.
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
  // Reads the definitions of classes before a value, the first of which begins with `code`. Returns
  // the value's own code.
  std::optional<uint8_t> DropClasses(uint8_t code);
  // False without a fault: the code begins no object. Its fields are its items.
  bool BeginObject(uint8_t code, std::optional<size_t>& items);

  std::string_view left_;
  const size_t size_;
  const char* fault_ = nullptr;
  uint32_t high_ = 0;   // the first half of a character beyond U+FFFF, between its halves
  size_t entries_ = 0;  // of the map that is read
  std::array<uint16_t, kClassesMax> fields_{};  // of each class that was defined
  size_t classes_ = 0;
};

}  // namespace firn::front
