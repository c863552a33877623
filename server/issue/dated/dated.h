#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/text/dated_numbers.h"
#include "common/text/time_zone.h"
#include "server/issue/dated/registry_time.h"
#include "server/issue/segment/ranged_strategy.h"

namespace firn {

// Issues numbers of one tag that consist of a date and a counter, from ranges in memory. The
// counter restarts in each period (common/text/dated_numbers.h).
//
//  1. Each range belongs to one period, which the source picks. Numbers are taken from the current
//     range under a mutex, after a check of the registry's time. When the range is used up, the
//     next range replaces it.
//  2. Once a range's period is over by the registry's time in the tag's zone, its numbers are not
//     issued: the rest is wasted, and the range does not change the step.
//  3. Ranges are fetched as by Segment, but never for a future period. The first range of a period
//     is fetched at its beginning if the tag had a call within its hold time before, otherwise by
//     the first call.
//  4. While the source is unreachable, a period is extended by the tag's `period_grace`, but at
//     most until a range of a later period arrives.
//  5. If the source has no more numbers of the period, the request is repeated with backoff,
//     because other servers may give numbers back. Meanwhile, calls are refused with the time until
//     the next period.
//  6. A call for more numbers than the period still has takes none. Otherwise each such call would
//     waste numbers when it is refused, and repeated calls would use up the period.
//  7. When a call is refused or times out, its last numbers return to the current range, unless
//     later numbers have been taken. Its other numbers are wasted.
//  8. A range that arrives after its period's end is wasted and counts as a failure. The next range
//     is fetched after a backoff, so that a slow source does not use up the numbers of a day.
class Dated final : public RangedStrategy {
 public:
  // kNotFound: this host does not know the time zone; kInvalid: the tag is not dated. `time` must
  // outlive this; no number is issued before its first reading.
  static Result<std::shared_ptr<Dated>> Make(const TagDefinition& tag, RangedParts parts,
                                             const RegistryTime& time);

  std::string_view name() const override { return "dated"; }
  bool TryOne(Method method, int64_t* id) override;
  Verdict Issue(IssueCall& call) override;
  // False, because a client could store a run and use the day's numbers on another day.
  bool gives_runs() const override { return false; }

 private:
  // A range, and its period's end by the registry's clock.
  struct Held {
    Range range;
    WallMs end;
  };

  Dated(const TagDefinition& tag, RangedParts parts, const RegistryTime& time, TimeZone zone);

  bool IsRange(Range range) const override;
  Status KeepLocked(Range range, BootMs now) override;
  Status FailedLocked(Status why, BootMs now) override;
  int64_t AskLocked() override { return policy_.Ask(); }
  bool TickLocked(BootMs now) override;
  bool IsIdleLocked() const override { return !current_ && !next_ && !used_up_until_; }
  int64_t NextLocked() const override;
  int64_t TakeBackLocked(const Runs& runs) override;
  int64_t SupplyLocked() const override;
  std::vector<Range> EmptyLocked() override;
  int64_t TrimLocked(int64_t start, BootMs now) override;
  std::optional<Refusal> WhyNotLocked(BootMs now) const override;

  bool ReadyLocked(BootMs now);
  bool MayGiveLocked(const Held& held, BootMs now) const;
  void WasteLocked(std::optional<Held>& held);
  void SwitchLocked(BootMs now);
  Range TakeLocked(int64_t count, BootMs now);
  bool WantsNextLocked(BootMs now) const;
  bool IsAwayLocked(BootMs now) const;
  Milliseconds GraceLocked() const { return std::chrono::seconds(tag_->period_grace); }

  bool IsUsedUpLocked(BootMs now) const;
  Refusal UsedUpLocked(BootMs now) const;
  static Refusal Until(Milliseconds left, std::string why);
  int64_t PeriodLocked(WallMs time) const;
  void NoteUsedUpLocked(BootMs now);
  void ForgetUsedUpLocked(BootMs now);
  std::optional<Refusal> TooManyLocked(const IssueCall& call, BootMs now) const;

  Verdict FindNone(IssueCall& call, BootMs now, Lock lock);

  const RegistryTime& time_;
  const TimeZone zone_;
  const DatedNumbers numbers_;

  // Under the mutex.
  std::optional<Held> current_;  // remains when used up, until the next range replaces it
  std::optional<Held> next_;
  int64_t mark_ = 1;                 // the next range is fetched when this many numbers are left
  std::optional<BootMs> loaded_at_;  // when the current range was loaded
  std::optional<WallMs> used_up_until_;  // end of the period that is used up
  std::optional<BootMs> asked_at_;       // when the last call arrived
};

}  // namespace firn
