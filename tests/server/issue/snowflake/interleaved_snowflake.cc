#include <memory>
#include <set>
#include <utility>

#include "common/time/cycles.h"
#include "common/time/entropy.h"
#include "server/issue/snowflake/snowflake.h"
#include "tests/server/issue/snowflake/interleaved_scenarios.h"

namespace firn {
namespace {

constexpr Tick kNow{1'000};

// Advances only when a scenario moves it; counts its readings.
class StillClock final : public Clock {
 public:
  explicit StillClock(WallMs wall) : wall_(wall) {}

  WallMs Wall() const override {
    ++readings;
    return wall_;
  }
  BootMs Boot() const override { return boot_; }

  void Advance(Milliseconds time) {
    wall_ += time;
    boot_ += std::max(time, Milliseconds(0));
  }

  mutable int readings = 0;

 private:
  WallMs wall_;
  BootMs boot_{1'000'000};
};

// A snowflake strategy with a claim of machine 1, threads that call it, and the ids they got.
class SnowflakeTable {
 public:
  SnowflakeTable(Interleaving& run, SequencerKind kind) : run_(run) {
    snowflake_ = std::make_unique<Snowflake>(
        ticks_, entropy_,
        SnowflakeOptions{.sequencer = {.kind = kind, .start = SequenceStart::kZero}});
    Adopt(1, kNow);
  }

  void Adopt(uint32_t machine, Tick first) {
    const auto claim = std::make_shared<Claim>(layout_, MachineId(machine), layout_.StartOf(first));
    claim->ExtendTo(layout_.StartOf(first + 100));
    run_.Expect(snowflake_->Adopt(claim).ok(), "a claim was refused");
  }

  // Returns the last tick of machine 1, which is not used after this.
  Tick Close() {
    const Tick last = *snowflake_->CloseClaim();
    closed_at_ = last;
    return last;
  }

  void TakeOne() {
    const bool closed_before = closed_at_.has_value();
    int64_t id = 0;
    if (snowflake_->TryOne(Method::kThrift, &id)) Saw(id, closed_before);
  }

  // Takes some ids at once.
  void TakeRun(int64_t want) {
    const bool closed_before = closed_at_.has_value();
    IdRun run;
    if (!snowflake_->TryRun(Method::kThrift, want, &run)) return;
    run_.Expect(run.count >= 1 && run.count <= want, "a run is of another length");
    for (int64_t i = 0; i < run.count; ++i) Saw(run.At(i), closed_before);
  }

  // Takes some ids by the slow path. Returns whether the call was refused.
  bool Take(int64_t count) {
    const bool closed_before = closed_at_.has_value();
    IssueCall call({.count = count});
    const Verdict verdict = snowflake_->Issue(call);
    int64_t before = 0;
    call.runs().ForEach([&](int64_t id) {
      run_.Expect(id > before, "the ids of a call do not rise");
      before = id;
      Saw(id, closed_before);
    });
    return verdict == Verdict::kRefused;
  }

  void Judge() {
    if (closed_at_) run_.Expect(used_ <= *closed_at_, "a tick was used beyond what Close said");
  }

 private:
  void Saw(int64_t id, bool closed_before) {
    run_.Expect(ids_.insert(id).second, "an id was given twice");
    if (layout_.machine().In(static_cast<uint64_t>(id)) != 1) return;
    run_.Expect(!closed_before, "an id was given under a claim that was closed before the call");
    used_ =
        std::max(used_, Tick(static_cast<int64_t>(layout_.time().In(static_cast<uint64_t>(id)))));
  }

  Interleaving& run_;
  const Layout layout_ = *Layout::Parse("time:41 machine:10 sequence:4");
  StillClock clock_{layout_.StartOf(kNow)};
  IdClock id_clock_;
  TickSource ticks_{layout_, id_clock_, clock_};
  SeededEntropy entropy_{11};
  std::unique_ptr<Snowflake> snowflake_;
  std::set<int64_t> ids_;
  std::optional<Tick> closed_at_;
  Tick used_{0};
};

Scenario AnAdoptionLosesNoCall(SequencerKind kind) {
  return [kind](Interleaving& run) {
    SnowflakeTable table(run, kind);
    run.Run({[&] {
               run.Expect(!table.Take(2), "a call was refused though there always was a claim");
               table.TakeOne();
             },
             [&] { table.Adopt(2, kNow); }});
  };
}

Scenario AClosedClaimIsNotUsed(SequencerKind kind) {
  return [kind](Interleaving& run) {
    SnowflakeTable table(run, kind);
    run.Run({[&] { table.TakeOne(); }, [&] { table.Take(2); },
             [&] {
               const Tick last = table.Close();
               run.Expect(last <= kNow, "more was used than there was");
               table.Adopt(2, kNow);
             }});
    table.Judge();
  };
}

Scenario ARunIsOfAClaimThatIsOpen(SequencerKind kind) {
  return [kind](Interleaving& run) {
    SnowflakeTable table(run, kind);
    run.Run({[&] {
               table.TakeRun(3);
               table.TakeRun(2);
             },
             [&] {
               table.Close();
               table.Adopt(2, kNow);
             }});
    table.Judge();
  };
}

// A clock reading that is accepted as fresh must be as new as its stamp says.
void AFreshStampIsOfAFreshTick(Interleaving& run) {
  const Layout layout = *Layout::Parse("time:41 machine:10 sequence:4");
  StillClock clock(layout.StartOf(kNow));
  IdClock id_clock;
  virtual_cycles = kFreshCycles;
  TickSource ticks(layout, id_clock, clock);
  virtual_cycles += 10 * kFreshCycles;
  clock.Advance(Milliseconds(50));
  const int readings = clock.readings;
  run.Run({[&] { ticks.Refresh(); },
           [&] {
             const Tick before = ticks.Current();
             const Tick now = ticks.Current();
             run.Expect(now >= before, "the clock went back");
             // A caller that had to read the clocks may find another thread reading them.
             const bool fresh_enough = clock.readings - readings == 1;
             run.Expect(!fresh_enough || now >= kNow + 50, "an old tick under a fresh stamp");
           }});
  virtual_cycles = 0;
}

// A thread that sets the clock back must not see an earlier time, even if other threads read it.
void ARestartIsSeenByItsMaker(Interleaving& run) {
  const Layout layout = *Layout::Parse("time:41 machine:10 sequence:4");
  StillClock clock(layout.StartOf(kNow));
  IdClock id_clock;
  virtual_cycles = kFreshCycles;
  TickSource ticks(layout, id_clock, clock);
  virtual_cycles += 10 * kFreshCycles;
  clock.Advance(Milliseconds(-900));
  run.Run({[&] { ticks.Refresh(); },
           [&] {
             ticks.Restart(clock.Wall(), clock.Read());
             run.Expect(ticks.Current() == kNow - 900, "the time of before is shown again");
           }});
  virtual_cycles = 0;
}

}  // namespace

std::vector<NamedScenario> SnowflakeScenarios() {
  std::vector<NamedScenario> scenarios;
  for (const auto& [kind, name] :
       {std::pair(SequencerKind::kAtomic, "atomic"), std::pair(SequencerKind::kMutex, "mutex"),
        std::pair(SequencerKind::kSpin, "spin")}) {
    scenarios.push_back(
        {std::string("an adoption loses no call, ") + name, AnAdoptionLosesNoCall(kind)});
    scenarios.push_back(
        {std::string("a closed claim is not used, ") + name, AClosedClaimIsNotUsed(kind)});
    scenarios.push_back(
        {std::string("a run is of an open claim, ") + name, ARunIsOfAClaimThatIsOpen(kind)});
  }
  scenarios.push_back({"a fresh stamp is of a fresh tick", AFreshStampIsOfAFreshTick});
  scenarios.push_back({"a restart is seen by its maker", ARestartIsSeenByItsMaker});
  return scenarios;
}

}  // namespace firn
