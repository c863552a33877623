#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "server/issue/segment/ranged_strategy.h"

namespace firn {

// Numbers of one tag that nobody holds in memory: every call waits for numbers that are taken from
// the source after it has come (buffer = none). Where the source's ranges rise over the whole
// cluster, so do the numbers, in real time: a call that begins after another has been answered,
// at whatever server, gets larger ones.
//
//  1. A call gets a ticket and waits. Calls that wait when the source has answered are asked for
//     together, so a round trip serves as many as have come meanwhile.
//  2. A range is cut up among the tickets for which it was taken, in their order, and no others.
//     What a caller who has given up does not fetch is thrown away after kKeep. Those for whom
//     nothing came ask again.
//  3. When a range is too small for its tickets, the last ones stay and are asked for again.
//  4. Closed, it throws away what waits to be fetched; nothing is given back.
class Unbuffered final : public RangedStrategy {
 public:
  static constexpr Milliseconds kKeep{2'000};
  static constexpr size_t kTicketsMax = 100'000;  // that wait; more calls are refused

  // kInvalid when the source does not permit it.
  static Result<std::shared_ptr<Unbuffered>> Make(const TagDefinition& tag, RangedParts parts);

  bool TryOne(Method, int64_t*) override { return false; }
  Verdict Issue(IssueCall& call) override;

 private:
  struct Ticket {
    uint64_t number = 0;
    int64_t count = 0;
    BootMs since;
  };
  struct Portion {
    Range range;
    BootMs since;
  };

  Unbuffered(const TagDefinition& tag, RangedParts parts);

  Verdict Queue(IssueCall& call, BootMs now, Lock lock);

  Status KeepLocked(Range range, BootMs now) override;
  Status FailedLocked(Status why, BootMs now) override;
  int64_t AskLocked(BootMs now) override;
  bool TickLocked(BootMs now) override;
  bool HurriesLocked() const override { return !waiting_.empty(); }
  int64_t SupplyLocked() const override;
  std::vector<Range> EmptyLocked() override;
  int64_t TrimLocked(int64_t start, BootMs now) override;
  void CloseLocked() override;
  void DescribeLocked(SegmentStatus& status) const override { status.step = 0; }

  void ThrowAwayOldLocked(BootMs now);

  // Under the mutex.
  std::deque<Ticket> waiting_;            // by number
  size_t asked_ = 0;                      // how many of them the fetch in flight is for
  std::map<uint64_t, Portion> portions_;  // by ticket: to be fetched
  uint64_t tickets_ = 0;                  // given out
};

}  // namespace firn
