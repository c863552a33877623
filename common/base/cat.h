#pragma once

#include <array>
#include <charconv>
#include <concepts>
#include <initializer_list>
#include <string>
#include <string_view>

namespace firn {

// An argument of Cat: a text, a character, or a whole number in decimal. Not a boolean, which would
// print as 1. Lives as long as the expression that contains it.
class CatPiece {
 public:
  CatPiece(const char* text) : text_(text) {}
  CatPiece(std::string_view text) : text_(text) {}
  CatPiece(const std::string& text) : text_(text) {}
  CatPiece(bool) = delete;
  CatPiece(char c) : digits_{c}, text_(digits_.data(), 1) {}
  template <std::integral Number>
  CatPiece(Number number)
      : text_(digits_.data(),
              std::to_chars(digits_.data(), digits_.data() + digits_.size(), number).ptr) {}
  CatPiece(const CatPiece&) = delete;
  CatPiece& operator=(const CatPiece&) = delete;

  std::string_view text() const { return text_; }

 private:
  std::array<char, 20> digits_;  // as many as -9223372036854775808 has
  std::string_view text_;
};

// Returns the concatenated pieces, with one allocation.
inline std::string CatPieces(std::initializer_list<std::string_view> pieces) {
  size_t bytes = 0;
  for (const std::string_view piece : pieces) bytes += piece.size();
  std::string all;
  all.reserve(bytes);
  for (const std::string_view piece : pieces) all += piece;
  return all;
}

//     Cat("--port is 1 to ", kPortMax, ", not ", Quoted(word))
template <typename... Pieces>
std::string Cat(const Pieces&... pieces) {
  return CatPieces({CatPiece(pieces).text()...});
}

}  // namespace firn
