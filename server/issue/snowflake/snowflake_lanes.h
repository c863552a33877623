#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "server/issue/snowflake/snowflake.h"
#include "server/issue/strategy.h"

namespace firn {

// Ids of several machine ids at once: a sequence, or lane, for each, so that threads do not share
// one, and so many times as many ids a tick.
//
// 1. Each thread that issues has a lane of its own, as far as there are enough, and takes from it.
//    Where that has none at the moment, because its tick is used up, its claim has ended or it
//    holds none, the next one is asked.
// 2. A call that has got a part of its ids waits for the rest in that lane. Where that lane's claim
//    has ended it goes on in another one in a later tick, so that the ids of a call rise. A call
//    for more ids than a tick has waits in the lane with the fewest such calls, and moves without
//    its part.
// 3. It refuses only what all lanes refuse, and waits only when no lane has an id now.
//
// Not promised: that ids of two calls rise, even of one connection. All lanes go by one TickSource,
// so a call that begins after another one has ended is at most as far behind that one as the tick
// source lags: in the same tick, or by a fraction of a millisecond in the one before.
//
// Thread-safe, as its lanes are; it has no state of its own.
class SnowflakeLanes final : public Strategy {
 public:
  // At least one, all of one TickSource.
  explicit SnowflakeLanes(std::vector<std::shared_ptr<Snowflake>> lanes)
      : lanes_(std::move(lanes)) {}

  std::string_view name() const override { return lanes_.front()->name(); }
  Status Start() override;
  bool TryOne(Method method, int64_t* id) override;
  bool TryRun(Method method, int64_t want, IdRun* run) override;
  Verdict Issue(IssueCall& call) override;
  // What its first lane says, when all have something to say.
  std::optional<Refusal> WhyNot() const override;
  int64_t NextAtLeast() const override;
  int64_t count_max() const override { return lanes_.front()->count_max(); }
  void Close() override;
  void Stop() override { Close(); }

 private:
  size_t OwnLane() const;
  size_t LaneFor(const IssueCall& call) const;
  size_t After(size_t lane) const { return lane + 1 == lanes_.size() ? 0 : lane + 1; }

  const std::vector<std::shared_ptr<Snowflake>> lanes_;
};

}  // namespace firn
