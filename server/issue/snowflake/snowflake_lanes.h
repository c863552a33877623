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

// Ids of several machine ids at once. Each has its own sequence, a lane, so threads do not share
// one, and a tick has the ids of all lanes.
//
// 1. Each issuing thread takes from a lane of its own, as far as there are enough. If that lane has
//    no id now (its tick is used up, its claim has ended, or it has none), the thread tries the
//    next.
// 2. A call that got a part of its ids waits for the rest in that lane. If the lane's claim ends,
//    the call continues in another lane in a later tick, so that the ids of one call rise. A call
//    for more ids than a tick has waits in the lane with the fewest such calls; when it moves to
//    another lane it loses its part.
// 3. It refuses only if all lanes refuse, and waits only if no lane has an id now.
//
// Ids of two calls may fall, even on one connection. All lanes use one TickSource, so a call that
// begins after another has ended is behind it at most by the tick source's lag: in the same tick,
// or by a fraction of a millisecond in the tick before.
//
// Thread-safe, as its lanes are; it has no state of its own.
class SnowflakeLanes final : public Strategy {
 public:
  // At least one lane; all must share one TickSource.
  explicit SnowflakeLanes(std::vector<std::shared_ptr<Snowflake>> lanes)
      : lanes_(std::move(lanes)) {}

  std::string_view name() const override { return lanes_.front()->name(); }
  Status Start() override;
  bool TryOne(Method method, int64_t* id) override;
  bool TryRun(Method method, int64_t want, IdRun* run) override;
  Verdict Issue(IssueCall& call) override;
  // The first lane's refusal if all lanes would refuse.
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
