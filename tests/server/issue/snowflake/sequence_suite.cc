#include "tests/server/issue/snowflake/sequence_suite.h"

#include <array>

#include "common/time/entropy.h"
#include "tests/server/issue/snowflake/sequence_rig.h"

namespace firn {
namespace {

using Fault = std::optional<std::string>;
using Kind = Step::Kind;

constexpr Tick kFirst = SequenceRig::kFirst;
constexpr std::array kStarts = {SequenceStart::kZero, SequenceStart::kRandom,
                                SequenceStart::kCarry};

// Runs `body` for each way of starting a tick, and returns the first fault.
template <typename Body>
Fault ForEachStart(Body&& body) {
  for (const SequenceStart start : kStarts) {
    if (Fault seen = body(start)) return seen;
  }
  return std::nullopt;
}

Fault Unless(bool holds, const char* what) { return holds ? Fault() : Fault(what); }

// The clock varies, stops, jumps and goes back; the rig's oracle checks every number.
Fault NothingTwiceAndAlwaysRising(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) {
    SequenceRig rig(maker, Tick(100'000), start);
    SeededEntropy random(20'240'101);
    int64_t now = kFirst.count() - 3;
    for (int i = 0; i < 5'000 && !rig.fault(); ++i) {
      if (random.Below(4) == 0) now += static_cast<int64_t>(random.Below(9)) - 3;
      rig.Take(Tick(now), 1 + random.Below(5));
    }
    return rig.fault();
  });
}

// A sequence that is reset before a refusal: ids repeat when the old tick returns.
Fault ARefusalBecauseOfTheClockLeavesTheSequence(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) -> Fault {
    SequenceRig rig(maker, Tick(100'000), start);
    rig.Take(kFirst + 5, 3);
    rig.Take(kFirst + 4);
    rig.TakeAll(kFirst + 5);
    const Step refused = rig.Take(kFirst + 4);
    if (refused.kind != Kind::kLater) return "did not wait when the clock was behind a full tick";
    if (rig.Take(kFirst + 5).kind == Kind::kTaken) return "found room in a full tick";
    return rig.fault();
  });
}

Fault ARefusalAtTheClaimsEndLeavesTheSequence(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) -> Fault {
    SequenceRig rig(maker, kFirst + 5, start);
    rig.Take(kFirst + 4, 3);
    const Tick last = rig.sequencer().Last();
    for (int i = 0; i < 3; ++i) {
      if (rig.Take(kFirst + 5).kind != Kind::kClaimEnds) return "did not see the claim's end";
    }
    if (rig.sequencer().Last() != last) return "a refused call has moved the state";
    rig.Take(kFirst + 4);
    rig.claim().ExtendTo(rig.layout().StartOf(kFirst + 6));
    if (rig.TakeAll(kFirst + 5) == 0) return "did not go on when the claim was extended";
    return rig.fault();
  });
}

// The tick after an overflow is forgotten: one id is issued twice per overflow.
Fault TheTickAfterAnOverflowIsRemembered(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) {
    SequenceRig rig(maker, Tick(100'000), start);
    for (int64_t tick = 0; tick < 4; ++tick) {
      rig.TakeAll(kFirst + tick);
      rig.Take(kFirst + tick);
      rig.Take(kFirst + tick + 1);
      rig.Take(kFirst + tick + 1);
    }
    return rig.fault();
  });
}

// "Another tick" mistaken for "a later tick".
Fault AnEarlierTickIsNotANewTick(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) {
    SequenceRig rig(maker, Tick(100'000), start);
    rig.Take(kFirst + 2, 2);
    rig.Take(kFirst + 3, 2);
    rig.Take(kFirst + 2, 2);
    rig.Take(kFirst + 3, 2);
    return rig.fault();
  });
}

Fault AFullTickWaitsForTheClock(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) -> Fault {
    SequenceRig rig(maker, Tick(100'000), start);
    rig.TakeAll(kFirst);
    const Step step = rig.Take(kFirst);
    if (step.kind != Kind::kLater || step.tick != kFirst + 1) return "did not name the next tick";
    return rig.fault();
  });
}

Fault AfterATickThatRanOutTheCeilingIsReached(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) -> Fault {
    SequenceRig rig(maker, Tick(100'000), start);
    rig.TakeAll(kFirst);
    const bool full = rig.TakeAll(kFirst + 1) == 8 && rig.TakeAll(kFirst + 3) == 8;
    return full ? rig.fault() : "gave less than a full tick";
  });
}

Fault AQuietTickHasRoomForHalfAtLeast(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) -> Fault {
    SequenceRig rig(maker, Tick(100'000), start);
    for (int64_t tick = 0; tick < 300; tick += 2) {
      rig.Take(kFirst + tick);
      if (rig.TakeAll(kFirst + tick + 1) < 4) return "began a tick beyond its half";
    }
    return rig.fault();
  });
}

Fault GivesWholeTicksBelowTheEndOnly(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) -> Fault {
    SequenceRig rig(maker, kFirst + 3, start);
    if (rig.TakeAll(kFirst + 2) == 0) return "did not use the last granted tick";
    rig.Take(kFirst + 2, 100);
    rig.Take(kFirst + 3);
    rig.Take(kFirst + 9);
    return rig.fault();
  });
}

// Seconds mistaken for milliseconds; and a bound within a second must cover no part of it.
Fault AnEndInsideASecondCoversNothingOfIt(const SequencerMaker& maker) {
  const Layout seconds = *Layout::Parse("time:31s machine:10 sequence:5");
  SequenceRig rig(maker, kFirst + 2, SequenceStart::kZero, seconds);
  rig.claim().ExtendTo(seconds.StartOf(kFirst + 3) + Milliseconds(999));
  if (rig.TakeAll(kFirst + 2) == 0) return "did not use a whole granted second";
  for (int64_t tick = 3; tick < 5'000; ++tick) rig.Take(kFirst + tick, 2);
  return rig.fault();
}

Fault TheLayoutsLastTickIsTheLast(const SequencerMaker& maker) {
  const Layout tiny = *Layout::Parse("time:11 machine:10 sequence:3");
  SequenceRig rig(maker, tiny.last_tick() + 1, SequenceStart::kZero, tiny);
  rig.claim().ExtendTo(tiny.StartOf(tiny.last_tick() + 100));
  if (rig.TakeAll(tiny.last_tick()) == 0) return "did not use the last tick";
  rig.Take(tiny.last_tick());
  if (rig.Take(tiny.last_tick() + 1).kind != Kind::kLayoutEnds) return "did not see the end";
  return rig.fault();
}

Fault NothingBeforeTheClaimsFirstTick(const SequencerMaker& maker) {
  SequenceRig rig(maker);
  const Step step = rig.Take(kFirst - 7);
  if (step.kind != Kind::kLater || step.tick != kFirst) return "did not wait for the first tick";
  return rig.fault();
}

Fault NothingAfterClose(const SequencerMaker& maker) {
  SequenceRig rig(maker);
  rig.Take(kFirst, 3);
  rig.Close();
  if (!rig.sequencer().closed()) return "does not know that it is closed";
  if (rig.sequencer().TakeOne(kFirst + 1) != Sequencer::kNone) return "gave one more";
  for (int64_t tick = 0; tick < 3; ++tick) {
    if (rig.Take(kFirst + tick).kind != Kind::kClosed) return "did not say that it is closed";
  }
  return rig.fault();
}

Fault LastIsTheLastTickUsed(const SequencerMaker& maker) {
  return ForEachStart([&](SequenceStart start) -> Fault {
    SequenceRig rig(maker, Tick(100'000), start);
    Sequencer& sequencer = rig.sequencer();
    if (sequencer.Last() != kFirst - 1) return "something was used before anything was";
    rig.Take(kFirst + 4);
    if (sequencer.Last() != kFirst + 4) return "not the tick in use";
    rig.TakeAll(kFirst + 5);
    if (sequencer.Last() != kFirst + 5) return "not the tick that ran out";
    rig.Take(kFirst + 5);
    rig.Take(kFirst + 6);
    if (rig.Close() != kFirst + 6) return "closing gave another tick";
    if (rig.Close() != kFirst + 6 || sequencer.Last() != kFirst + 6) return "forgot it";
    return rig.fault();
  });
}

Fault AnUnusedClaimEndsBeforeItsBeginning(const SequencerMaker& maker) {
  SequenceRig rig(maker);
  return Unless(rig.Close() == kFirst - 1, "said that something was used");
}

Fault TakeOneIsTakeOfOne(const SequencerMaker& maker) {
  SequenceRig rig(maker);
  rig.Take(kFirst);
  const uint64_t position = rig.sequencer().TakeOne(kFirst);
  if (position != (static_cast<uint64_t>(kFirst.count()) << 3 | 1)) return "another position";
  rig.TakeAll(kFirst);
  return Unless(rig.sequencer().TakeOne(kFirst) == Sequencer::kNone, "gave one of a full tick");
}

}  // namespace

#define FIRN_CHECK(name) \
  { #name, name }

const std::vector<SequenceCheck>& SequenceChecks() {
  static const std::vector<SequenceCheck> checks = {
      FIRN_CHECK(NothingTwiceAndAlwaysRising),
      FIRN_CHECK(ARefusalBecauseOfTheClockLeavesTheSequence),
      FIRN_CHECK(ARefusalAtTheClaimsEndLeavesTheSequence),
      FIRN_CHECK(TheTickAfterAnOverflowIsRemembered),
      FIRN_CHECK(AnEarlierTickIsNotANewTick),
      FIRN_CHECK(AFullTickWaitsForTheClock),
      FIRN_CHECK(AfterATickThatRanOutTheCeilingIsReached),
      FIRN_CHECK(AQuietTickHasRoomForHalfAtLeast),
      FIRN_CHECK(GivesWholeTicksBelowTheEndOnly),
      FIRN_CHECK(AnEndInsideASecondCoversNothingOfIt),
      FIRN_CHECK(TheLayoutsLastTickIsTheLast),
      FIRN_CHECK(NothingBeforeTheClaimsFirstTick),
      FIRN_CHECK(NothingAfterClose),
      FIRN_CHECK(LastIsTheLastTickUsed),
      FIRN_CHECK(AnUnusedClaimEndsBeforeItsBeginning),
      FIRN_CHECK(TakeOneIsTakeOfOne),
  };
  return checks;
}

#undef FIRN_CHECK

std::vector<std::string> Violations(const SequencerMaker& maker) {
  std::vector<std::string> violations;
  for (const SequenceCheck& check : SequenceChecks()) {
    if (Fault seen = check.run(maker)) violations.push_back(std::string(check.name) + ": " + *seen);
  }
  return violations;
}

}  // namespace firn
