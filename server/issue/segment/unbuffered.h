#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>

#include "common/base/fork.h"
#include "server/issue/segment/fetch_gate.h"
#include "server/issue/segment/pace.h"
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
//  4. Closed or abandoned, it gives nothing; nothing is kept, so nothing is given back.
//  5. What was taken before a Drop, or before the tag's `start` was raised, is not given out after
//     it, also not by a call that had got a part of it: that one is refused.
//  6. In a forked child it is closed.
class Unbuffered final : public RangedStrategy, public std::enable_shared_from_this<Unbuffered> {
 public:
  static constexpr Milliseconds kKeep{2'000};
  static constexpr size_t kTicketsMax = 100'000;  // that wait; more calls are refused

  // kInvalid when the source does not permit it.
  static Result<std::shared_ptr<Unbuffered>> Make(const TagDefinition& tag, RangedParts parts);

  bool TryOne(Method, int64_t*) override { return false; }
  Verdict Issue(IssueCall& call) override;
  std::optional<Refusal> WhyNot() const override;
  void Close() override;
  void Stop() override { Close(); }

  void Abandon() override;
  void Adjust(const TagDefinition& tag) override;
  void Tick(BootMs now) override;
  void Drop(const std::string& why) override;
  bool settled() const override;
  SegmentStatus status() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;

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
  void Fetch(Lock lock, BootMs now);
  void OnTaken(const Result<Range>& taken);
  Status KeepLocked(const Result<Range>& taken, BootMs now);
  void CutUp(Range range, BootMs now);
  void ForgetAsked();
  void ThrowAwayOld(BootMs now);
  void DropLocked();

  const RangedParts parts_;
  const ForkSentinel sentinel_;

  mutable std::mutex mutex_;  // guards all below
  std::shared_ptr<const TagDefinition> tag_;
  FetchGate gate_;
  std::deque<Ticket> waiting_;            // by number
  size_t asked_ = 0;                      // how many of them the fetch in flight is for
  std::map<uint64_t, Portion> portions_;  // by ticket: to be fetched
  uint64_t tickets_ = 0;                  // given out
  int64_t end_ = 0;                       // of the range taken last
  int64_t given_ = 0;                     // numbers, ever
  uint64_t drops_ = 0, asked_drops_ = 0;
  bool closed_ = false;
  bool abandoned_ = false;
  SegmentStatus counts_;
  Pace pace_;
};

}  // namespace firn
