#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "server/issue/segment/ranged_strategy.h"

namespace firn {

// Numbers of one tag without a buffer: every call waits for numbers that are taken from the source
// after it has arrived (buffer = none). If the source's ranges rise over the whole cluster, so do
// the numbers, in real time: a call that begins after another was answered, at any server, gets
// larger ones.
//
//  1. A call gets a ticket and waits. When the source has answered, the next request is for all
//     waiting calls, so one round trip serves all that have arrived meanwhile.
//  2. A range is divided among the tickets for which it was taken, in their order, and no others.
//     Numbers that no caller fetches within kKeep are discarded. A waiting call whose ticket is
//     gone gets another.
//  3. If a range is too small for its tickets, the last ones remain and are requested again. So is
//     a call that needs all of its numbers in one run, and would get some of them: these are
//     wasted.
//  4. Close discards the numbers that wait to be fetched; nothing is given back.
class Unbuffered : public RangedStrategy {
 public:
  static constexpr Milliseconds kKeep{2'000};
  static constexpr size_t kTicketsMax = 100'000;  // waiting; more calls are refused

  // kInvalid if the source does not permit it.
  static Result<std::shared_ptr<Unbuffered>> Make(const TagDefinition& tag, RangedParts parts);

  bool TryOne(Method, int64_t*) override { return false; }
  Verdict Issue(IssueCall& call) override;

 protected:
  Unbuffered(const TagDefinition& tag, RangedParts parts);

  // Forgets why the last request failed, once no call has waited for kKeep.
  void ForgetTrouble(BootMs now);

 private:
  struct Ticket {
    uint64_t number = 0;
    int64_t count = 0;
    bool whole = false;  // as one run
    BootMs since;
  };
  struct Portion {
    Range range;
    BootMs since;
  };

  Verdict Queue(IssueCall& call, BootMs now, Lock lock);

  Status KeepLocked(Range range, BootMs now) override;
  Status FailedLocked(Status why, BootMs now) override;
  int64_t AskLocked(BootMs now) override;
  bool TickLocked(BootMs now) override;
  bool IsUrgentLocked() const override { return !waiting_.empty(); }
  int64_t SupplyLocked() const override;
  std::vector<Range> EmptyLocked() override;
  int64_t TrimLocked(int64_t start, BootMs now) override;
  void CloseLocked() override;
  void DescribeLocked(SegmentStatus& status) const override { status.step = 0; }

  void DropOldLocked(BootMs now);
  void ForgetLocked(uint64_t ticket);

  // Under the mutex.
  std::deque<Ticket> waiting_;            // by number
  size_t asked_ = 0;                      // the first of them, which the fetch in flight is for
  std::map<uint64_t, Portion> portions_;  // by ticket: numbers that wait for their call
  uint64_t tickets_ = 0;                  // number of the last ticket
};

}  // namespace firn
