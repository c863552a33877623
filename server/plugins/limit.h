#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "common/tag/tag_definition.h"
#include "common/time/clock.h"
#include "server/issue/plugin.h"

namespace firn {

// Limits the ids per second of one tag on this server. Calls above the limit are refused with
// REJECTED and the time to wait.
//
// 1. A bucket holds at most `burst` ids and is refilled at `per_second`. A call takes all of its
//    ids or none.
// 2. The bucket is stored in one word: the time at which it will be full again, in 2^-20 ms of the
//    boot clock. Taking an id adds the time in which one id is refilled. The result may be ahead of
//    now by at most the time that refills the whole bucket. So no thread has to refill the bucket.
//    The time per id is rounded up, so rounding never exceeds the limit.
// 3. A call that is refused later returns the ids that it took from the bucket. The bucket may have
//    filled up meanwhile, so a later burst may be larger by the returned number.
//
// Thread-safe and lock-free; reads the clock once per call. A forked child has a copy of the
// bucket, so the limit applies per process. A changed tag gets a new, full bucket.
class LimitPlugin final : public Plugin {
 public:
  static constexpr int kOrder =
      100;  // runs first, so that a call over the limit costs no other work
  static constexpr int64_t kPerSecondMax = 100'000'000;

  struct Options {
    int64_t per_second = 1;  // 1 to kPerSecondMax
    int64_t burst = 1;       // at least 1; a larger call is always refused
  };

  // `clock` must outlive the object. Options are clamped to their ranges.
  LimitPlugin(const Clock& clock, Options options);

  std::string_view name() const override { return "limit"; }
  int order() const override { return kOrder; }
  Effect effect() const override { return Effect::kNone; }
  std::optional<Refusal> Before(const Request& request) override;
  void OnRefusal(const Request& request, const Refusal& refusal) override;

 private:
  static constexpr int64_t kPartsPerMs = 1 << 20;
  static constexpr int kAttempts = 1000;

  std::optional<Refusal> Full(int64_t missing_parts) const;

  const Clock& clock_;
  const int64_t burst_;
  const int64_t parts_per_id_;
  std::atomic<int64_t>
      full_at_;  // time when the bucket will be full, in 2^-20 ms of the boot clock
};

// Creates a tag's plugin from limit.per_second and limit.burst. For the catalogue.
Result<std::shared_ptr<Plugin>> MakeLimit(const Clock& clock, const TagDefinition& tag);

}  // namespace firn
