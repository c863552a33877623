#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// A block cipher of 16-byte blocks under one key. Thread-safe.
class BlockCipher {
 public:
  static constexpr size_t kBlockBytes = 16;

  virtual ~BlockCipher() = default;

  // Encrypts each block separately, without chaining. False if the cipher failed: the blocks are
  // then worthless.
  virtual bool Encrypt(uint8_t* blocks, size_t count) const = 0;
};

// FF1 of NIST SP 800-38G: a permutation of the strings of `length` numerals of one radix, under a
// key and a tweak. Arithmetic only; the caller supplies the cipher.
//
// A string is given as its two halves, each read as a number, most significant numeral first: the
// left one of length / 2 numerals (rounded down), the right one of the rest. So the string may be
// longer than a machine word.
//
// 1. Ten Feistel rounds, each of one block: key, tweak and parameters are chained into `base_`
//    once, here; a round only adds its number and one half.
// 2. Many strings go through a round together, so that the cipher sees many blocks at once.
//
// Immutable and thread-safe. Only Make allocates.
class Ff1 {
 public:
  struct Halves {
    uint64_t left = 0;
    uint64_t right = 0;

    friend bool operator==(const Halves&, const Halves&) = default;
  };

  static constexpr uint32_t kRadixMax = 1 << 16;
  static constexpr size_t kTweakBytesMax = 128;

  // Fails for: a radix outside 2 to 2^16; a domain below a million strings (the standard's minimum)
  // or with halves above 2^62; a tweak that is too long; a cipher that fails.
  static Result<Ff1> Make(std::shared_ptr<const BlockCipher> cipher, uint32_t radix, int length,
                          std::string_view tweak);

  // Number of strings of each half: every half must lie below it.
  uint64_t left_size() const { return left_size_; }
  uint64_t right_size() const { return right_size_; }

  // Replaces each string by its permutation. False if the cipher failed: the strings are then
  // worthless.
  bool Encrypt(std::span<Halves> strings) const;
  bool Decrypt(std::span<Halves> strings) const;

 private:
  static constexpr int kRounds = 10;
  static constexpr size_t kGroup = 64;  // number of strings that are processed together

  struct Block {
    uint64_t high = 0;
    uint64_t low = 0;
  };

  Ff1() = default;

  Status Chain(uint32_t radix, int length, std::string_view tweak);
  template <bool encrypt>
  bool Walk(std::span<Halves> strings) const;
  template <bool encrypt>
  bool Round(int round, std::span<Halves> group) const;
  void PutRound(int round, uint64_t half, uint8_t* block) const;
  uint64_t Reduce(const uint8_t* block, uint64_t size) const;

  std::shared_ptr<const BlockCipher> cipher_;
  uint64_t left_size_ = 0;
  uint64_t right_size_ = 0;
  int half_bytes_ = 0;  // the standard's b
  Block base_;          // the chain up to the last block, and that block without number and half
};

}  // namespace firn
