#include "registry/cluster/nonce.h"

#include "common/base/hex.h"
#include "common/base/parse.h"

namespace firn {
namespace {

constexpr size_t kHalf = Nonce::kTextBytes / 2;

}  // namespace

Nonce Nonce::Draw(Entropy& entropy) {
  Nonce drawn;
  // Zero has a probability of 2^-128. After two zeros the source of random numbers is broken.
  for (int i = 0; i < 2 && drawn.zero(); ++i) drawn = Nonce(entropy.Next(), entropy.Next());
  if (drawn.zero()) Die("the random numbers are all zero");
  return drawn;
}

Result<Nonce> Nonce::Parse(std::string_view text) {
  Nonce nonce;
  if (text.size() != kTextBytes || !IsLowerHex(text)) {
    return Corrupt("a nonce consists of 32 lower-case hexadecimal digits");
  }
  nonce.high_ = ParseNumber<uint64_t>(text.substr(0, kHalf), 16).value();
  nonce.low_ = ParseNumber<uint64_t>(text.substr(kHalf), 16).value();
  return nonce;
}

std::string Nonce::text() const { return ToHex(high_) + ToHex(low_); }

}  // namespace firn
