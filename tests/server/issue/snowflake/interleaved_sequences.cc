#include <memory>
#include <set>
#include <utility>

#include "common/sequence/sequencer.h"
#include "tests/server/issue/snowflake/interleaved_scenarios.h"

namespace firn {
namespace {

constexpr Tick kFirst{1'000};

// A sequencer with two numbers per tick, threads that take from it, and the numbers they got.
class SequenceTable {
 public:
  SequenceTable(Interleaving& run, SequencerKind kind)
      : run_(run), claim_(std::make_shared<Claim>(layout_, MachineId(5), layout_.StartOf(kFirst))) {
    claim_->ExtendTo(layout_.StartOf(kFirst + 3));
    sequencer_ = MakeSequencer({.kind = kind, .start = SequenceStart::kZero}, claim_, cell_, 7);
  }

  // Takes one after another; each must be larger than the one before.
  std::function<void()> Taker(std::vector<Tick> nows, uint64_t want) {
    return [this, nows = std::move(nows), want] {
      std::pair<Tick, uint64_t> before{0, 0};
      for (const Tick now : nows) {
        const bool closed_before = closed_;
        const Step step = sequencer_->Take(now, want);
        if (step.kind != Step::Kind::kTaken) continue;
        run_.Expect(!closed_before, "a number was taken after Close had returned");
        for (uint64_t i = 0; i < step.count; ++i) {
          const std::pair position{step.tick, step.first + i};
          run_.Expect(given_.insert(position).second, "a number was given twice");
          run_.Expect(position > before, "a thread's numbers do not rise");
          before = position;
        }
      }
    };
  }

  std::function<void()> Closer() {
    return [this] {
      last_ = sequencer_->Close();
      closed_ = true;
      run_.Expect(sequencer_->closed(), "it is not closed for the one who closed it");
      run_.Expect(sequencer_->Close() == last_, "Close says something else the second time");
    };
  }

  void Judge() {
    if (closed_) {
      run_.Expect(sequencer_->Last() == last_, "Last says something else than Close");
    }
    const Tick used = given_.empty() ? kFirst - 1 : given_.rbegin()->first;
    run_.Expect(sequencer_->Last() == used, "Last is not the last tick that was used");
  }

 private:
  Interleaving& run_;
  const Layout layout_ = *Layout::Parse("time:41 machine:10 sequence:1");
  ForkCells::Cell cell_{0};
  std::shared_ptr<Claim> claim_;
  std::unique_ptr<Sequencer> sequencer_;
  std::set<std::pair<Tick, uint64_t>> given_;
  bool closed_ = false;
  Tick last_{0};
};

Scenario TwoTakeAndOneCloses(SequencerKind kind) {
  return [kind](Interleaving& run) {
    SequenceTable table(run, kind);
    run.Run({table.Taker({kFirst, kFirst + 1}, 1), table.Taker({kFirst}, 2), table.Closer()});
    table.Judge();
  };
}

Scenario TwoTake(SequencerKind kind) {
  return [kind](Interleaving& run) {
    SequenceTable table(run, kind);
    run.Run({table.Taker({kFirst, kFirst, kFirst + 1}, 1), table.Taker({kFirst, kFirst + 1}, 1)});
    table.Judge();
  };
}

// The keeper writes L to the file and then extends the claim: a thread that sees an id below the
// claim's new end must find that L in the file.
void IssuedIsOnFile(Interleaving& run) {
  const Layout layout = *Layout::Parse("time:41 machine:10 sequence:1");
  const auto claim = std::make_shared<Claim>(layout, MachineId(5), layout.StartOf(kFirst));
  ForkCells::Cell cell(0);
  const auto sequencer = MakeSequencer({.start = SequenceStart::kZero}, claim, cell, 7);
  Atomic<int64_t> file(kFirst.count());
  run.Run({[&] {
             for (const Tick end : {kFirst + 1, kFirst + 2}) {
               file.store(end.count(), std::memory_order_relaxed);
               claim->ExtendTo(layout.StartOf(end));
             }
           },
           [&] {
             for (const Tick now : {kFirst, kFirst + 1}) {
               const Step step = sequencer->Take(now, 1);
               if (step.kind != Step::Kind::kTaken) continue;
               run.Expect(step.tick.count() < file.load(std::memory_order_relaxed),
                          "an id was issued that the file does not cover");
             }
           }});
}

// A keeper has only one thread; even with two, the end must not go back.
void TheEndNeverGoesBack(Interleaving& run) {
  const Layout layout = *Layout::Parse("time:41 machine:10 sequence:1");
  Claim claim(layout, MachineId(5), layout.StartOf(kFirst));
  run.Run({[&] { claim.ExtendTo(layout.StartOf(kFirst + 2)); },
           [&] { claim.ExtendTo(layout.StartOf(kFirst + 1)); },
           [&] {
             const Tick end = claim.end_tick();
             run.Expect(claim.end_tick() >= end, "a claim's end went back");
           }});
  run.Expect(claim.end_tick() == kFirst + 2, "a claim's end was lost");
}

}  // namespace

std::vector<NamedScenario> SequenceScenarios() {
  std::vector<NamedScenario> scenarios;
  for (const auto& [kind, name] :
       {std::pair(SequencerKind::kAtomic, "atomic"), std::pair(SequencerKind::kMutex, "mutex"),
        std::pair(SequencerKind::kSpin, "spin")}) {
    scenarios.push_back({std::string("two take, ") + name, TwoTake(kind)});
    scenarios.push_back(
        {std::string("two take and one closes, ") + name, TwoTakeAndOneCloses(kind)});
  }
  scenarios.push_back({"issued is on file", IssuedIsOnFile});
  scenarios.push_back({"the end never goes back", TheEndNeverGoesBack});
  return scenarios;
}

}  // namespace firn
