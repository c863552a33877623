// Known mistakes in sequences, each in a separate sequencer: the contract suite must find every one
// of them, by the check that is named after it.

#include <functional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/sequence/sequencer_kinds.h"
#include "tests/server/issue/snowflake/sequence_rig.h"
#include "tests/server/issue/snowflake/sequence_suite.h"

namespace firn {
namespace {

using testing::Contains;
using testing::IsEmpty;
using testing::Not;
using testing::StartsWith;

template <typename Rules>
std::vector<std::string> ViolationsOf() {
  return Violations(
      [](std::shared_ptr<const Claim> claim, SequenceStart start, ForkCells::Cell& cell) {
        const SequenceShape shape(claim->layout(), start, 7);
        return std::make_unique<AtomicSequencer<Rules>>(std::move(claim), shape, cell);
      });
}

// The claim as a mutant sees it.
struct Seen {
  const SequenceShape& shape;
  const Claim& claim;
  uint64_t next;
  Tick now;
  uint64_t want;
  uint64_t* after;

  Step Right() const { return SequenceRules::Take(shape, claim, next, now, want, after); }
  Tick tick() const { return shape.TickOf(next); }
  uint64_t sequence() const { return shape.SequenceOf(next); }
  Step Give(Tick tick, uint64_t first) const {
    const uint64_t count = std::min(want, shape.ids_per_tick() - first);
    *after = shape.Position(tick, first) + count;
    return {Step::Kind::kTaken, tick, first, count};
  }
};

// Rules that are correct except for `Mistake`.
template <typename Mistake>
struct Wrong {
  static Step Take(const SequenceShape& shape, const Claim& claim, uint64_t next, Tick now,
                   uint64_t want, uint64_t* after) {
    return Mistake::Take(Seen{shape, claim, next, now, want, after});
  }
  static Tick Last(const SequenceShape& shape, uint64_t next) { return Mistake::Last(shape, next); }
};

struct RightLast {
  static Tick Last(const SequenceShape& shape, uint64_t next) {
    return SequenceRules::Last(shape, next);
  }
};

struct NoMistake : RightLast {
  static Step Take(const Seen& seen) { return seen.Right(); }
};

TEST(SequenceMutants, PassesCorrectRules) {
  EXPECT_THAT(ViolationsOf<Wrong<NoMistake>>(), IsEmpty());
}

struct ResetsTheSequenceBeforeRefusing : RightLast {
  static Step Take(const Seen& seen) {
    if (seen.now >= seen.tick()) return seen.Right();
    *seen.after = seen.shape.Position(seen.tick() - (seen.sequence() == 0 ? 1 : 0), 0);
    return {Step::Kind::kLater, seen.tick()};
  }
};

TEST(SequenceMutants, ASequenceResetBeforeARefusalIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<ResetsTheSequenceBeforeRefusing>>(),
              Contains(StartsWith("ARefusalBecauseOfTheClockLeavesTheSequence")));
}

struct ResetsTheSequenceAtTheClaimsEnd : RightLast {
  static Step Take(const Seen& seen) {
    const Step step = seen.Right();
    if (step.kind == Step::Kind::kClaimEnds) *seen.after = seen.shape.Position(seen.tick(), 0);
    return step;
  }
};

TEST(SequenceMutants, ASequenceResetAtTheClaimsEndIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<ResetsTheSequenceAtTheClaimsEnd>>(),
              Contains(StartsWith("ARefusalAtTheClaimsEndLeavesTheSequence")));
}

struct ForgetsTheTickAfterAnOverflow : RightLast {
  static Step Take(const Seen& seen) {
    const Step step = seen.Right();
    const bool overflown = seen.sequence() == 0 && seen.tick() > seen.claim.first_tick();
    if (step.kind == Step::Kind::kTaken && overflown) *seen.after = seen.next;
    return step;
  }
};

TEST(SequenceMutants, AForgottenTickAfterAnOverflowIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<ForgetsTheTickAfterAnOverflow>>(),
              Contains(StartsWith("TheTickAfterAnOverflowIsRemembered")));
}

struct TakesAnotherTickForALaterOne : RightLast {
  static Step Take(const Seen& seen) {
    if (seen.now == seen.tick() || seen.now < seen.claim.first_tick()) return seen.Right();
    if (seen.now >= seen.claim.end_tick() || seen.now > seen.shape.last_tick) return seen.Right();
    return seen.Give(seen.now, 0);
  }
};

TEST(SequenceMutants, AnotherTickTakenForALaterTickIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<TakesAnotherTickForALaterOne>>(),
              Contains(StartsWith("AnEarlierTickIsNotANewTick")));
}

struct LendsFromTheFuture : RightLast {
  static Step Take(const Seen& seen) {
    const Step step = seen.Right();
    return step.kind == Step::Kind::kLater ? seen.Give(step.tick, 0) : step;
  }
};

TEST(SequenceMutants, ATickThatHasNotComeIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<LendsFromTheFuture>>(),
              Contains(StartsWith("AFullTickWaitsForTheClock")));
}

struct UsesTheTickOfTheEnd : RightLast {
  static Step Take(const Seen& seen) {
    const Step step = seen.Right();
    if (step.kind != Step::Kind::kClaimEnds || step.tick > seen.claim.end_tick()) return step;
    return step.tick > seen.now ? step : seen.Give(step.tick, 0);
  }
};

TEST(SequenceMutants, AnEndThatIsOneTooFarIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<UsesTheTickOfTheEnd>>(),
              Contains(StartsWith("GivesWholeTicksBelowTheEndOnly")));
}

struct TakesSecondsForMilliseconds : RightLast {
  static Step Take(const Seen& seen) {
    const Step step = seen.Right();
    if (step.kind != Step::Kind::kClaimEnds || step.tick > seen.now) return step;
    const int64_t end_ms = seen.claim.end_tick().count() * seen.claim.layout().tick_ms();
    return step.tick.count() < end_ms ? seen.Give(step.tick, 0) : step;
  }
};

TEST(SequenceMutants, SecondsUsedAsMillisecondsAreFound) {
  EXPECT_THAT(ViolationsOf<Wrong<TakesSecondsForMilliseconds>>(),
              Contains(StartsWith("AnEndInsideASecondCoversNothingOfIt")));
}

struct GoesBeyondTheLayout : RightLast {
  static Step Take(const Seen& seen) {
    const Step step = seen.Right();
    const bool late = step.kind == Step::Kind::kLayoutEnds && step.tick <= seen.now;
    return late ? seen.Give(step.tick, 0) : step;
  }
};

TEST(SequenceMutants, ATickBeyondTheLayoutIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<GoesBeyondTheLayout>>(),
              Contains(StartsWith("TheLayoutsLastTickIsTheLast")));
}

struct LetsABatchLeaveItsTick : RightLast {
  static Step Take(const Seen& seen) {
    Step step = seen.Right();
    if (step.kind != Step::Kind::kTaken) return step;
    step.count = seen.want;
    *seen.after = seen.shape.Position(step.tick, step.first) + step.count;
    return step;
  }
};

TEST(SequenceMutants, ABatchThatLeavesItsTickIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<LetsABatchLeaveItsTick>>(),
              Contains(StartsWith("NothingTwiceAndAlwaysRising")));
}

struct StartsAnywhere : RightLast {
  static Step Take(const Seen& seen) {
    const Step step = seen.Right();
    const bool begins = step.kind == Step::Kind::kTaken && step.tick > seen.tick();
    return begins ? seen.Give(step.tick, seen.shape.ids_per_tick() - 2) : step;
  }
};

TEST(SequenceMutants, AStartBeyondTheHalfIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<StartsAnywhere>>(),
              Contains(StartsWith("AQuietTickHasRoomForHalfAtLeast")));
}

struct SaysLessThanItUsed : NoMistake {
  static Tick Last(const SequenceShape& shape, uint64_t next) { return shape.TickOf(next) - 1; }
};

TEST(SequenceMutants, ALastThatIsTooLowIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<SaysLessThanItUsed>>(),
              Contains(StartsWith("LastIsTheLastTickUsed")));
}

struct SaysMoreThanItUsed : NoMistake {
  static Tick Last(const SequenceShape& shape, uint64_t next) { return shape.TickOf(next); }
};

TEST(SequenceMutants, ALastThatIsTooHighIsFound) {
  EXPECT_THAT(ViolationsOf<Wrong<SaysMoreThanItUsed>>(),
              Contains(StartsWith("LastIsTheLastTickUsed")));
}

// --- interrupted calls --------------------------------------------------------------------------

// The correct rules, with a pause between reading the word and writing it in which a test can act.
struct Interrupted : SequenceRules {
  static inline std::function<void()> in_the_middle;

  static Step Take(const SequenceShape& shape, const Claim& claim, uint64_t next, Tick now,
                   uint64_t want, uint64_t* after) {
    const Step step = SequenceRules::Take(shape, claim, next, now, want, after);
    if (in_the_middle) std::exchange(in_the_middle, nullptr)();
    return step;
  }
};

// Writes its result without checking whether the word is still the one that it read.
class Careless final : public CellSequencer<Interrupted> {
 public:
  using CellSequencer::CellSequencer;

  Step Take(Tick now, uint64_t want) override {
    const uint64_t word = cell_.load();
    if (word == kClosed) return {};
    uint64_t after = 0;
    const Step step = Attempt(word, now, want, &after);
    cell_.store(after);
    return step;
  }
  uint64_t TakeOne(Tick now) override { return PositionOf(Take(now, 1)); }
  Tick Close() override { return SwapInClosed(); }
};

template <typename SequencerType>
SequencerMaker Make() {
  return [](std::shared_ptr<const Claim> claim, SequenceStart start, ForkCells::Cell& cell) {
    const SequenceShape shape(claim->layout(), start, 7);
    return std::make_unique<SequencerType>(std::move(claim), shape, cell);
  };
}

std::optional<std::string> FaultWhenAnotherTakesInTheMiddle(const SequencerMaker& maker) {
  SequenceRig rig(maker);
  rig.Take(SequenceRig::kFirst);
  Interrupted::in_the_middle = [&] { rig.Take(SequenceRig::kFirst); };
  rig.Take(SequenceRig::kFirst);
  return rig.fault();
}

std::optional<std::string> FaultWhenClosedInTheMiddle(const SequencerMaker& maker) {
  SequenceRig rig(maker);
  Interrupted::in_the_middle = [&] { rig.Close(); };
  rig.Take(SequenceRig::kFirst);
  rig.Take(SequenceRig::kFirst);
  return rig.fault();
}

TEST(SequencerInTheMiddleOfACall, GivesNothingTwice) {
  EXPECT_EQ(FaultWhenAnotherTakesInTheMiddle(Make<AtomicSequencer<Interrupted>>()), std::nullopt);
  EXPECT_NE(FaultWhenAnotherTakesInTheMiddle(Make<Careless>()), std::nullopt);
}

TEST(SequencerInTheMiddleOfACall, GivesNothingOnceClosed) {
  EXPECT_EQ(FaultWhenClosedInTheMiddle(Make<AtomicSequencer<Interrupted>>()), std::nullopt);
  EXPECT_NE(FaultWhenClosedInTheMiddle(Make<Careless>()), std::nullopt);
}

}  // namespace
}  // namespace firn
