#include "server/plugins/ff1.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

namespace firn {
namespace {

__extension__ using Wide = unsigned __int128;

constexpr uint64_t kHalfSizeMax = uint64_t{1} << 62;
constexpr uint64_t kDomainLeast = 1'000'000;
constexpr size_t kBlock = BlockCipher::kBlockBytes;

// Convert between big-endian bytes and numbers.
uint64_t Load64(const uint8_t* bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes, sizeof value);
  return std::endian::native == std::endian::little ? __builtin_bswap64(value) : value;
}

void Store64(uint64_t value, uint8_t* bytes) {
  if (std::endian::native == std::endian::little) value = __builtin_bswap64(value);
  std::memcpy(bytes, &value, sizeof value);
}

void Append(uint64_t value, int size, std::vector<uint8_t>& out) {
  for (int i = size - 1; i >= 0; --i) out.push_back(static_cast<uint8_t>(value >> (8 * i)));
}

// Returns radix^exponent, or 0 if that is above kHalfSizeMax.
uint64_t Power(uint64_t radix, int exponent) {
  uint64_t power = 1;
  for (int i = 0; i < exponent; ++i) {
    if (power > kHalfSizeMax / radix) return 0;
    power *= radix;
  }
  return power;
}

}  // namespace

Result<Ff1> Ff1::Make(std::shared_ptr<const BlockCipher> cipher, uint32_t radix, int length,
                      std::string_view tweak) {
  if (radix < 2 || radix > kRadixMax) return Invalid("FF1: no such radix");
  if (tweak.size() > kTweakBytesMax) return Invalid("FF1: the tweak is too long");
  if (length < 2 || length > 124) return Invalid("FF1: no such length");
  Ff1 ff1;
  ff1.cipher_ = std::move(cipher);
  ff1.left_size_ = Power(radix, length / 2);
  ff1.right_size_ = Power(radix, length - length / 2);
  if (ff1.right_size_ == 0) return Invalid("FF1: the strings are too long");
  if (Wide{ff1.left_size_} * ff1.right_size_ < kDomainLeast) {
    return Invalid("FF1: fewer than a million strings");
  }
  ff1.half_bytes_ = static_cast<int>(std::bit_width(ff1.right_size_ - 1) + 7) / 8;
  FIRN_TRY(ff1.Chain(radix, length, tweak));
  return ff1;
}

// Computes the CBC-MAC of the standard's P and Q, with round 0 and half 0 in Q, up to the last
// block.
Status Ff1::Chain(uint32_t radix, int length, std::string_view tweak) {
  std::vector<uint8_t> text = {1, 2, 1};
  Append(radix, 3, text);
  Append(kRounds, 1, text);
  Append(static_cast<uint64_t>(length / 2) % 256, 1, text);
  Append(static_cast<uint64_t>(length), 4, text);
  Append(tweak.size(), 4, text);
  text.insert(text.end(), tweak.begin(), tweak.end());
  const size_t tail = static_cast<size_t>(half_bytes_) + 1;  // the round's number and the half
  const size_t whole = (text.size() + tail + kBlock - 1) / kBlock * kBlock;
  text.resize(whole, 0);

  std::array<uint8_t, kBlock> chain{};
  for (size_t at = 0; at < whole; at += kBlock) {
    if (at > 0 && !cipher_->Encrypt(chain.data(), 1)) return Internal("the block cipher failed");
    for (size_t i = 0; i < kBlock; ++i) chain[i] ^= text[at + i];
  }
  base_ = {Load64(chain.data()), Load64(chain.data() + 8)};
  return {};
}

bool Ff1::Encrypt(std::span<Halves> strings) const { return Walk<true>(strings); }
bool Ff1::Decrypt(std::span<Halves> strings) const { return Walk<false>(strings); }

template <bool encrypt>
bool Ff1::Walk(std::span<Halves> strings) const {
  while (!strings.empty()) {
    const std::span<Halves> group = strings.first(std::min(kGroup, strings.size()));
    for (int i = 0; i < kRounds; ++i) {
      if (!Round<encrypt>(encrypt ? i : kRounds - 1 - i, group)) return false;
    }
    strings = strings.subspan(group.size());
  }
  return true;
}

template <bool encrypt>
bool Ff1::Round(int round, std::span<Halves> group) const {
  std::array<uint8_t, kGroup * kBlock> blocks;
  uint8_t* block = blocks.data();
  for (const Halves& s : group) {
    PutRound(round, encrypt ? s.right : s.left, block);
    block += kBlock;
  }
  if (!cipher_->Encrypt(blocks.data(), group.size())) return false;
  const uint64_t size = round % 2 == 0 ? left_size_ : right_size_;
  block = blocks.data();
  for (Halves& s : group) {
    const uint64_t y = Reduce(block, size);
    if constexpr (encrypt) {
      const uint64_t sum = s.left + y;
      s = {s.right, sum >= size ? sum - size : sum};
    } else {
      s = {s.right >= y ? s.right - y : s.right + size - y, s.left};
    }
    block += kBlock;
  }
  return true;
}

void Ff1::PutRound(int round, uint64_t half, uint8_t* block) const {
  const auto number = static_cast<uint64_t>(round);
  const bool fits = half_bytes_ < 8;  // the byte with the round's number is directly above the half
  Store64(base_.high ^ (fits ? 0 : number), block);
  Store64(base_.low ^ half ^ (fits ? number << (8 * half_bytes_) : 0), block + 8);
}

// Returns the first 8 or 12 bytes (the standard's d) as a number, modulo `size`.
uint64_t Ff1::Reduce(const uint8_t* block, uint64_t size) const {
  const uint64_t first = Load64(block);
  if (half_bytes_ <= 4) return first % size;
  const uint64_t rest = Load64(block + 8) >> 32;
  return static_cast<uint64_t>(((Wide{first % size} << 32) | rest) % size);
}

}  // namespace firn
