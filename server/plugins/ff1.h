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

  // Encrypts each block separately, without chaining. Returns false if the cipher failed; the
  // blocks are then unusable.
  virtual bool Encrypt(uint8_t* blocks, size_t count) const = 0;
};

// FF1 of NIST SP 800-38G: a permutation of the strings of `length` numerals of one radix, under a
// key and a tweak. The caller supplies the block cipher.
//
// A string is represented by two numbers, one for each half, with the most significant numeral
// first. The left half has length / 2 numerals (rounded down), the right half has the others. So
// the string may be longer than a machine word.
//
// 1. There are ten Feistel rounds, with one block each. Make chains key, tweak and parameters into
//    `base_` once; a round only adds its number and one half.
// 2. Many strings are processed together in each round, so that the cipher gets many blocks at
//    once.
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

  // Fails if the cipher fails or a parameter is out of range. The radix must be within 2 to 2^16,
  // and the tweak short enough. There must be at least a million strings, which is the standard's
  // minimum, and at most 2^62 values of each half.
  static Result<Ff1> Make(std::shared_ptr<const BlockCipher> cipher, uint32_t radix, int length,
                          std::string_view tweak);

  // Number of possible values of each half; each half must be below it.
  uint64_t left_size() const { return left_size_; }
  uint64_t right_size() const { return right_size_; }

  // Replaces each string by its permutation. Returns false if the cipher failed; the strings are
  // then unusable.
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
  Block base_;  // the chain value before the last block, XORed with that block without number and
                // half
};

}  // namespace firn
