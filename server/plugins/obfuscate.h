#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "server/issue/plugin.h"
#include "server/plugins/ff1.h"
#include "server/plugins/key_file.h"

namespace firn {

// Returns AES under `key` (16, 24 or 32 bytes). Lock-free; allocates only if there are more than 64
// concurrent callers. kInternal if the library fails.
Result<std::shared_ptr<const BlockCipher>> MakeAes(const SecretKey& key);

// Returns a text that identifies a key without revealing it: the first three bytes of an encrypted
// block of zeros, as six hexadecimal digits. Empty if the cipher fails.
std::string KeyCheck(const BlockCipher& cipher);

// Replaces each id by another one, so that ids reveal neither their number nor the next id. The key
// can reverse this.
//
// 1. FF1 with AES under the tag's key permutes the ids below 10^width, or all ids if the width is
//    19. So two ids never become the same number. With a width of 19, a result beyond 63 bits is
//    encrypted again until it is an id (cycle walking).
// 2. The tweak is the tag's name, so two tags with the same key have different permutations.
// 3. A larger id refuses the call with EXHAUSTED; it is never returned unchanged.
// 4. Calls for runs are refused, because permuted ids do not form runs.
// 5. Width, key and name determine the permutation; the tag's definition fixes all three.
//
// Thread-safe; allocates nothing except the memory of Runs. A forked child may continue to use it.
// Limitations: the order of ids is lost, and an observer of about sqrt(10^width) pairs of issued
// and permuted ids can break the secrecy.
class ObfuscatePlugin final : public Plugin {
 public:
  static constexpr int kOrder = 900;  // runs last, so that other plugins get the ids as issued
  static constexpr int kWidthLeast = 6;
  static constexpr int kWidthMost = 19;  // all ids

  static Result<std::shared_ptr<ObfuscatePlugin>> Make(std::shared_ptr<const BlockCipher> cipher,
                                                       std::string_view tag, int64_t width);

  std::string_view name() const override { return "obfuscate"; }
  int order() const override { return kOrder; }
  Effect effect() const override { return Effect::kEach; }
  std::optional<Refusal> Before(const Request& request) override;
  std::optional<Refusal> After(const Request& request, Runs& runs) override;

  // Hide returns the permuted id, and Reveal the original one. kInvalid beyond the width.
  Result<int64_t> Hide(int64_t id) const;
  Result<int64_t> Reveal(int64_t shown) const;

  // The largest id that can be permuted.
  int64_t most() const { return most_; }

 private:
  ObfuscatePlugin(Ff1 ff1, int64_t most) : ff1_(std::move(ff1)), most_(most) {}

  bool Holds(const Runs& runs) const;
  Status CheckRange(int64_t id) const;
  Ff1::Halves Split(int64_t id) const;
  uint64_t Join(const Ff1::Halves& halves) const;
  bool Permute(std::span<Ff1::Halves> strings) const;
  Refusal TooLarge() const;

  const Ff1 ff1_;
  const int64_t most_;
};

}  // namespace firn
