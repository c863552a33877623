#include "registry/cluster/nonce.h"

#include "common/base/hex.h"
#include "common/base/parse.h"

namespace firn {
namespace {

constexpr size_t kHalf = Nonce::kTextBytes / 2;

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
  if (text.size() != kTextBytes || !IsLowerHex(text)) {
    return Corrupt("a nonce is 32 hexadecimal digits in lower case");
  }
  nonce.high_ = ParseNumber<uint64_t>(text.substr(0, kHalf), 16).value();
  nonce.low_ = ParseNumber<uint64_t>(text.substr(kHalf), 16).value();
  return nonce;
}

std::string Nonce::text() const { return ToHex(high_) + ToHex(low_); }

}  // namespace firn
