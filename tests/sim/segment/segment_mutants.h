#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/time/clock.h"
#include "server/issue/dated/dated_pick.h"
#include "server/issue/dated/registry_time.h"
#include "server/issue/segment/range_source.h"
#include "server/issue/segment/range_store.h"
#include "server/store/ledger.h"
#include "server/store/registry_source.h"
#include "tests/sim/sim_program.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Plausible implementation errors of a segment store. Each one is injected at a seam, so the
// product contains no switch for any of them.
enum class SegmentMutant {
  kNone,
  kUsedBeforeLedger,   // source: returns the store's pick without the ledger
  kSetOverForeign,     // registry: sets a tag's node regardless of its version
  kUnknownKept,        // registry: an unknown outcome is reported as ok
  kStandInUnwritten,   // registry: ranges that a ledger picks instead of a store are not written
  kTornGiveBack,       // registry: a tail is given back even if others took numbers since
  kOldFormServed,      // registry: a ledger reads the definition that the process serves
  kDefaultBeforeRead,  // process: the tag `default` always exists
  kUnknownBeforeRead,  // process: tags that have not been read are unknown
  kUnknownAtOnce,      // process: a tag that was just created is not looked up
  kClockOfServer,      // registry: a server's own clock is reported as the registry's
  kClockOfLastWrite,   // registry: the time of the previous write is reported
  kClockSleeps,        // process: its boot clock stops while the machine sleeps
  kNeverContradicts,   // process: its wall clock equals the registry's clock
  kDeleteUsed,         // operator: a tag is deleted although its numbers were issued
  kAheadOfPeriod,      // source: takes numbers of the next period an hour before it begins
  kStartUnheeded,      // process: its strategies do not learn that a tag's start was raised
  kLimitUnheeded,      // registry: the root says that ids of undefined tags are far off
  kEditStopsTag,       // process: every definition that cannot be served refuses the tag
  kUnsafeEditKept,     // process: such a definition never refuses the tag
  kDocumentsIgnored,   // operator: a restore ignores the backups
  kMemoryIgnored,      // registry: a restore does not see the memory of an unfinished one
  kAnswersLower,       // registry: a restore lowers ledgers to the numbers that users have
  kTagForgotten,       // registry: a restore does not re-create a tag of the document
  // Of tags with buffer = owner:
  kTermByOldClock,    // process: compares its term with the time of the last round
  kTakeoverEarly,     // registry: other servers' windows are shown as a third of what they are
  kTailsKept,         // source: keeps a tail that is given back, for the next request
  kTailsTwice,        // source: keeps it and gives it back
  kRangesReserved,    // source: reserves two ranges, the second one for the next request
  kLaterCallsServed,  // connection: numbers of an answer go to calls that came after the request
  kFormUnheeded,      // connection: a take has the form in which the owner serves the tag
};

// Returns whether only tags with buffer = owner expose it; whether it is one of KeepingSource.
inline bool IsOfOwners(SegmentMutant mutant) { return mutant >= SegmentMutant::kTermByOldClock; }
inline bool IsOfSource(SegmentMutant mutant) {
  return mutant == SegmentMutant::kTailsKept || mutant == SegmentMutant::kTailsTwice ||
         mutant == SegmentMutant::kRangesReserved;
}

inline constexpr MutantRow<SegmentMutant> kSegmentMutants[] = {
    {SegmentMutant::kUsedBeforeLedger, "used-before-ledger", "was issued twice"},
    {SegmentMutant::kSetOverForeign, "set-over-foreign", "was issued twice"},
    {SegmentMutant::kUnknownKept, "unknown-kept", "was issued twice"},
    {SegmentMutant::kStandInUnwritten, "stand-in-unwritten", "was issued twice"},
    {SegmentMutant::kTornGiveBack, "torn-give-back", "was issued twice"},
    {SegmentMutant::kOldFormServed, "old-form-served", "was issued as"},
    {SegmentMutant::kDefaultBeforeRead, "default-before-read", "both plain and obfuscated"},
    {SegmentMutant::kUnknownBeforeRead, "unknown-before-read", "called unknown"},
    {SegmentMutant::kUnknownAtOnce, "unknown-at-once", "called unknown"},
    {SegmentMutant::kClockOfServer, "clock-of-server", "in a wrong period"},
    {SegmentMutant::kClockOfLastWrite, "clock-of-last-write", "in a wrong period"},
    {SegmentMutant::kClockSleeps, "clock-sleeps", "in a wrong period"},
    {SegmentMutant::kNeverContradicts, "never-contradicts", "in a wrong period"},
    {SegmentMutant::kDeleteUsed, "delete-used", "was issued twice"},
    {SegmentMutant::kAheadOfPeriod, "ahead-of-period", "in a wrong period"},
    {SegmentMutant::kStartUnheeded, "start-unheeded", "below its start"},
    {SegmentMutant::kLimitUnheeded, "limit-unheeded", "among the ids of undefined tags"},
    {SegmentMutant::kEditStopsTag, "edit-stops-tag", "was stopped by an edit of its ranges"},
    {SegmentMutant::kUnsafeEditKept, "unsafe-edit-kept", "after an edit of its source"},
    {SegmentMutant::kDocumentsIgnored, "documents-ignored", "was issued twice"},
    {SegmentMutant::kMemoryIgnored, "memory-ignored", "was issued twice"},
    {SegmentMutant::kAnswersLower, "answers-lower", "was issued twice"},
    {SegmentMutant::kTagForgotten, "tag-forgotten", "a restore forgot tag"},
    {SegmentMutant::kTermByOldClock, "term-by-old-clock", "went to a call that began after"},
    {SegmentMutant::kTakeoverEarly, "takeover-early", "went to a call that began after"},
    {SegmentMutant::kTailsKept, "tails-kept", "went to a call that began after"},
    {SegmentMutant::kTailsTwice, "tails-twice", "was issued twice"},
    {SegmentMutant::kRangesReserved, "ranges-reserved", "went to a call that began after"},
    {SegmentMutant::kLaterCallsServed, "later-calls-served", "went to a call that began after"},
    {SegmentMutant::kFormUnheeded, "form-unheeded", "was issued as"},
};

// The write of a tag's node in a multi; null if there is none.
Write* TagSet(std::vector<Write>& writes);

// Sits between a ledger and the code that injects connection faults, and injects the mutants'
// errors of the registry.
class LedgerSeam final : public ForwardingCoordinator {
 public:
  // References must outlive it.
  LedgerSeam(Coordinator& inner, const MemoryTree& tree, SegmentMutant mutant)
      : ForwardingCoordinator(inner), tree_(tree), mutant_(mutant) {}

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;

 private:
  void TellTime(WriteDone& done);

  std::map<std::string, std::string> served_;  // last node read with a watch, by path
  const MemoryTree& tree_;
  const SegmentMutant mutant_;
};

// The clocks as a process reads them: a wall clock, and a boot clock that may not count sleep.
class ProcessClock final : public Clock {
 public:
  // `uncounted`: sleep that the boot clock does not count. All must outlive it.
  ProcessClock(const Clock& wall, const Clock& boot, const Milliseconds& uncounted)
      : wall_(wall), boot_(boot), uncounted_(uncounted) {}

  WallMs Wall() const override { return wall_.Wall(); }
  BootMs Boot() const override { return boot_.Boot() - uncounted_; }

 private:
  const Clock& wall_;
  const Clock& boot_;
  const Milliseconds& uncounted_;
};

// The boot clock as of the last round of the control loop.
class RoundClock final : public Clock {
 public:
  explicit RoundClock(const Clock& clock) : clock_(clock), round_(clock.Boot()) {}

  void BeginRound() { round_ = clock_.Boot(); }
  WallMs Wall() const override { return clock_.Wall(); }
  BootMs Boot() const override { return round_; }

 private:
  const Clock& clock_;
  BootMs round_;
};

// A source that keeps numbers for the next request, which may come in another term.
class KeepingSource final : public RangeSource {
 public:
  KeepingSource(Ledger& ledger, PostToControl control, SegmentMutant mutant)
      : source_(ledger, std::move(control)), mutant_(mutant) {}

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override;
  void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) override;
  bool permits_no_buffer() const override { return false; }

 private:
  RegistrySource source_;
  const SegmentMutant mutant_;
  std::map<std::string, Range> kept_;  // by tag
};

// A source of dated tags that picks a period too early.
class EarlySource final : public RangeSource {
 public:
  using Post = std::function<void(std::function<void()>)>;

  EarlySource(Ledger& ledger, RegistryTime& time, const Clock& clock, Post post)
      : ledger_(ledger), time_(time), clock_(clock), post_(std::move(post)) {}

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override {
    time_.Note(clock_.Wall(), clock_.Boot());
    const auto pick = [this, size](const TagDefinition& now) {
      return PickDated(now, size, clock_.Wall() + std::chrono::hours(1));
    };
    post_([this, tag, pick, done = std::move(done)] { ledger_.Extend(tag, pick, done); });
  }
  void GiveBack(const TagDefinition&, Range, GiveBackDone done) override {
    post_([done = std::move(done)] { done(Invalid("never")); });
  }
  bool permits_no_buffer() const override { return false; }

 private:
  Ledger& ledger_;
  RegistryTime& time_;
  const Clock& clock_;
  const Post post_;
};

// A source that does not wait for the ledger.
class HastySource final : public RangeSource {
 public:
  using Post = std::function<void(std::function<void()>)>;

  HastySource(RangeStore& store, Post post) : store_(store), post_(std::move(post)) {}

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override {
    post_([this, tag, size, done = std::move(done)] { done(store_.Advance(tag, 1, size)); });
  }
  void GiveBack(const TagDefinition&, Range, GiveBackDone done) override {
    post_([done = std::move(done)] { done(Invalid("never")); });
  }
  bool permits_no_buffer() const override { return false; }

 private:
  RangeStore& store_;
  const Post post_;
};

}  // namespace firn
