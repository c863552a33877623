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

// Numbers of one tag that consist of a date and a counter that restarts with each period
// (common/text/dated_numbers.h), from ranges in memory.
//
//  1. Every range is of one period; the source picks it. Numbers are taken from the current range
//     under a mutex, after a look at the registry's time. The next range takes its place when it is
//     used up.
//  2. Once the registry's time in the tag's zone is beyond a range's period none of its numbers is
//     given: the rest is wasted, and how long it lasted teaches the step nothing.
//  3. Fetched is what Segment would fetch, and never for a period to come: the first range of a
//     period is fetched when it begins, if the tag was asked for within its hold time before, or
//     else by the first call.
//  4. While the source is away a period goes on for the tag's `period_grace` after its end, or
//     until there is a range of a later one.
//  5. A source that has no more numbers of the period is asked again now and then, since others may
//     give some back. Calls are refused meanwhile, with the time to the next period.
//  6. A call for more than the period can still give gets nothing: what it had taken would be lost
//     when it is refused, and soon the whole period with it.
//  7. The last numbers of a call that is refused, or times out, return to the current range where
//  nothing was taken after
//     them; the others are wasted.
//  8. A range that arrives after its period's end is wasted and counts as a failure. The next one
//     is fetched after a pause, so that a slow source does not use up the numbers of a day.
class Dated final : public RangedStrategy {
 public:
  // kNotFound: the time zone is unknown here; kInvalid: the tag is not dated. `time` must outlive
  // this; no number is issued before its first reading.
  static Result<std::shared_ptr<Dated>> Make(const TagDefinition& tag, RangedParts parts,
                                             const RegistryTime& time);

  std::string_view name() const override { return "dated"; }
  bool TryOne(Method method, int64_t* id) override;
  Verdict Issue(IssueCall& call) override;
  // False: a client that stores a run would use the day's numbers on another day.
  bool gives_runs() const override { return false; }

 private:
  // Numbers of one period, and the period's end by the registry's clock.
  struct Held {
    Range range;
    WallMs end;
  };

  Dated(const TagDefinition& tag, RangedParts parts, const RegistryTime& time, TimeZone zone);

  bool IsRange(Range range) const override;
  Status KeepLocked(Range range, BootMs now) override;
  Status FailedLocked(Status why, BootMs now) override;
  int64_t AskLocked(BootMs) override { return policy_.Ask(); }
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
  std::optional<Held> current_;  // kept when used up, until there is another
  std::optional<Held> next_;
  int64_t mark_ = 1;  // the next range is fetched when this many of the current one are left
  std::optional<BootMs> loaded_at_;      // the current range
  std::optional<WallMs> used_up_until_;  // the period
  std::optional<BootMs> asked_at_;       // by the last call
};

}  // namespace firn
