#include "registry/cluster/nonce.h"

namespace firn {
namespace {

constexpr std::string_view kDigits = "0123456789abcdef";
constexpr size_t kHalf = Nonce::kTextBytes / 2;

void Append(std::string& text, uint64_t value) {
  for (int shift = 60; shift >= 0; shift -= 4) text += kDigits[(value >> shift) & 15];
}

bool ReadHalf(std::string_view text, uint64_t& value) {
  for (const char c : text) {
    const size_t digit = kDigits.find(c);
    if (digit == std::string_view::npos) return false;
    value = value << 4 | digit;
  }
  return true;
}

}  // namespace

Nonce Nonce::Draw(Entropy& entropy) {
  Nonce drawn;
  // Zero comes up once in 2^128; a source that gives nothing else is broken, and asked twice only.
  for (int i = 0; i < 2 && drawn.zero(); ++i) drawn = Nonce(entropy.Next(), entropy.Next());
  if (drawn.zero()) Die("the random numbers are all zero");
  return drawn;
}

Result<Nonce> Nonce::Parse(std::string_view text) {
  Nonce nonce;
  if (text.size() != kTextBytes || !ReadHalf(text.substr(0, kHalf), nonce.high_) ||
      !ReadHalf(text.substr(kHalf), nonce.low_)) {
    return Corrupt("a nonce is 32 hexadecimal digits in lower case");
  }
  return nonce;
}

std::string Nonce::text() const {
  std::string text;
  text.reserve(kTextBytes);
  Append(text, high_);
  Append(text, low_);
  return text;
}

}  // namespace firn
