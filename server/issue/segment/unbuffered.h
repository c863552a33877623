#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <vector>

#include "server/issue/segment/ranged_strategy.h"

namespace firn {

// Issues numbers of one tag without a buffer (buffer = none): every call waits for numbers that are
// taken from the source after the call has arrived. If the source's ranges rise across the whole
// cluster, the numbers rise in real time: a call that begins after another was answered, at any
// server, gets larger numbers.
//
//  1. A call gets a ticket and waits. When the source has answered, the next request includes all
//     calls that wait when it is sent. So one round trip serves all calls that have arrived
//     meanwhile.
//  2. A range is divided only among the tickets for which it was requested, in their order. Numbers
//     that are not fetched by their call within kKeep are discarded. A waiting call whose ticket
//     was dropped gets a new one. The ticket of a call that ends is dropped.
//  3. If a range is too small for its tickets, the last tickets remain for the next request. If a
//     call needs one run and only a part of it is left, the call remains, too, and that part is
//     wasted.
//  4. Close discards the numbers that wait for their calls; nothing is given back.
class Unbuffered : public RangedStrategy {
 public:
  static constexpr Milliseconds kKeep{2'000};
  static constexpr size_t kTicketsMax = 100'000;  // waiting; more calls are refused

  // kInvalid if the source does not permit it.
  static Result<std::shared_ptr<Unbuffered>> Make(const TagDefinition& tag, RangedParts parts);

  bool TryOne(Method, int64_t*) override { return false; }
  Verdict Issue(IssueCall& call) override;
  bool joins_calls() const override { return true; }

 protected:
  Unbuffered(const TagDefinition& tag, RangedParts parts);

  // Returns how many numbers all waiting calls need, at least 1. The request in flight then
  // includes all these calls; it must not have been sent yet.
  int64_t CountAll();

  // If the last request failed and no call waits, requests one number as soon as that is permitted.
  // The number is wasted. Only a request can find out that the source gives numbers again.
  void RetryIfIdle(BootMs now);
  // Ends the pause after failed requests, because their cause is over.
  void RetryNow();

 private:
  struct Ticket {
    uint64_t number = 0;
    int64_t count = 0;
    bool whole = false;  // whether the call needs one run
  };
  struct Portion {
    Range range;
    BootMs since;
  };

  Verdict Queue(IssueCall& call, BootMs now, Lock lock);

  Status KeepLocked(Range range, BootMs now) override;
  Status FailedLocked(Status why, BootMs now) override;
  int64_t AskLocked() override;
  bool TickLocked(BootMs now) override;
  bool IsUrgentLocked() const override { return !waiting_.empty(); }
  int64_t SupplyLocked() const override;
  std::vector<Range> EmptyLocked() override;
  int64_t TrimLocked(int64_t start, BootMs now) override;
  void ForgetLocked(uint64_t ticket) override;
  void CloseLocked() override;
  void DescribeLocked(SegmentStatus& status) const override { status.step = 0; }

  void DropOldLocked(BootMs now);

  // Under the mutex.
  std::deque<Ticket> waiting_;  // by number
  size_t asked_ = 0;  // the request in flight includes the first `asked_` tickets of waiting_
  std::map<uint64_t, Portion> portions_;  // by ticket: numbers that wait for their call
  uint64_t tickets_ = 0;                  // number of the last ticket
};

}  // namespace firn
