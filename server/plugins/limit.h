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

// Limits the ids per second of one tag on this server. Calls above the limit are REJECTED with the
// time to wait.
//
// 1. A bucket holds `burst` ids and fills with `per_second`. A call takes all of its ids or none.
// 2. The bucket is one word: the moment at which it would be full again, in 2^20ths of a
//    millisecond of the boot clock. Taking an id moves that moment ahead by the time an id needs;
//    it may lie at most a full bucket's time ahead. So no thread has to fill the bucket. The time
//    of an id is rounded up, so rounding never exceeds the limit.
// 3. A call that got no ids after all returns what it took. Meanwhile the bucket may have filled
//    up, so a later burst may be larger by as much as was returned.
//
// Thread-safe and lock-free; reads the clock once a call. In a forked child the bucket is a copy:
// the limit applies per process. A changed tag gets a new, full bucket.
class LimitPlugin final : public Plugin {
 public:
  static constexpr int kOrder = 100;  // first: a call that is refused here has cost nothing else
  static constexpr int64_t kPerSecondMax = 100'000'000;

  struct Options {
    int64_t per_second = 1;  // 1 to kPerSecondMax
    int64_t burst = 1;       // at least 1; a larger call is always refused
  };

  // `clock` must outlive it. Options out of range are moved to the nearest limit.
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
  std::atomic<int64_t> full_at_;  // in parts of the boot clock
};

// Creates a tag's plugin from limit.per_second and limit.burst. For the catalogue.
Result<std::shared_ptr<Plugin>> MakeLimit(const Clock& clock, const TagDefinition& tag);

}  // namespace firn
