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

// AES under `key` (16, 24 or 32 bytes). Lock-free for up to 64 concurrent callers; one more
// allocates. kInternal if the library refuses.
Result<std::shared_ptr<const BlockCipher>> MakeAes(const SecretKey& key);

// Identifies a key without revealing it: the first three bytes of an encrypted block of zeros, as
// six hexadecimal digits. Empty if the cipher fails.
std::string KeyCheck(const BlockCipher& cipher);

// Replaces each id by another one, so that ids reveal neither how many there are nor which comes
// next. The key reverses it.
//
// 1. The ids below 10^width, or with a width of 19 all ids, are permuted among themselves, by FF1
//    with AES under the tag's key. So two ids are never shown as the same number. FF1 permutes all
//    numbers of 19 digits: a number beyond 63 bits is encrypted again until it is an id (cycle
//    walking).
// 2. The tweak is the tag's name: two tags under one key are permuted differently.
// 3. A larger id ends the call with EXHAUSTED: it is never shown unchanged.
// 4. Calls for runs are refused: permuted ids do not form any.
// 5. Width, key and name determine the shown ids; the tag's definition fixes all three.
//
// Thread-safe; allocates nothing per id beyond what Runs needs for them. A forked child may
// continue to use it. Limitations: an observer of about the square root of 10^width pairs of issued
// and shown ids can break the secrecy, and the order of ids is lost.
class ObfuscatePlugin final : public Plugin {
 public:
  static constexpr int kOrder = 900;  // last: earlier plugins see the ids as issued
  static constexpr int kWidthLeast = 6;
  static constexpr int kWidthMost = 19;  // all ids

  static Result<std::shared_ptr<ObfuscatePlugin>> Make(std::shared_ptr<const BlockCipher> cipher,
                                                       std::string_view tag, int64_t width);

  std::string_view name() const override { return "obfuscate"; }
  int order() const override { return kOrder; }
  Effect effect() const override { return Effect::kEach; }
  std::optional<Refusal> Before(const Request& request) override;
  std::optional<Refusal> After(const Request& request, Runs& runs) override;

  // Returns the id that is shown for `id`, and the reverse. kInvalid beyond the width.
  Result<int64_t> Hide(int64_t id) const;
  Result<int64_t> Reveal(int64_t shown) const;

  // The largest id that is permuted.
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
