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

// Issues ids under several machine ids. Each machine id has its own sequence, called a lane. So
// threads need not share a sequence, and a tick has the ids of all lanes.
//
// 1. Each issuing thread has its own lane, if there are enough lanes. If the lane has no id now
//    (its tick is used up, its claim has ended, or it has no claim), the thread tries the next
//    lane.
// 2. A call that got a part of its ids waits for the rest in that lane. If the lane's claim ends,
//    the call continues in another lane in a later tick, so that the ids of one call rise. A call
//    for more ids than a tick has waits in the lane with the fewest such calls; it loses its part
//    when it moves to another lane.
// 3. A call is refused only if all lanes refuse it, and waits only if no lane has an id now.
//
// The id of a later call may be lower than that of an earlier one, even on one connection. All
// lanes use one TickSource, so the difference is at most the tick source's lag: the later id is in
// the same tick, or, within a fraction of a millisecond, in the previous one.
//
// Thread-safe: it has no state except its lanes, which are thread-safe.
class SnowflakeLanes final : public Strategy {
 public:
  // There must be at least one lane, and all lanes must share one TickSource.
  explicit SnowflakeLanes(std::vector<std::shared_ptr<Snowflake>> lanes)
      : lanes_(std::move(lanes)) {}

  std::string_view name() const override { return lanes_.front()->name(); }
  Status Start() override;
  bool TryOne(Method method, int64_t* id) override;
  bool TryRun(Method method, int64_t want, IdRun* run) override;
  Verdict Issue(IssueCall& call) override;
  // Returns the first lane's refusal if all lanes would refuse.
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
