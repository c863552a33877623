#include "tests/sim/segment/segment_world.h"

#include <algorithm>
#include <cstdio>

#include "common/base/cat.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "tests/sim/segment/segment_violation.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr int kSteps = 3'000;

// Pauses at the end; longer than a month, and far below a leap that requires an operator.
constexpr Milliseconds kRest = kADay * 40;

// Returns a random day of the years in which the operator's zones changed their clocks in all
// supported ways.
WallMs SomeDay(SeededEntropy& dice) {
  return WallMs(1'330'000'000'000) + kADay * static_cast<int64_t>(dice.Below(4'500));
}

}  // namespace

SegmentWorld::SegmentWorld(uint64_t seed, SegmentMutant mutant, const SimArguments& arguments)
    : dice_(seed),
      trace_(arguments.trace),
      clock_(SomeDay(dice_)),
      registry_clock_(clock_),
      tree_(registry_clock_),
      periods_(registry_clock_, clock_),
      peers_(clock_, dice_, mutant),
      shared_{.clock = clock_,
              .registry_clock = registry_clock_,
              .tree = tree_,
              .database = database_,
              .oracle = oracle_,
              .periods = periods_,
              .dice = dice_,
              .peers = peers_,
              .mutant = mutant,
              .trace = [this](const std::string& what) { Trace(what); }},
      loses_data_(!OneIn(3)),
      ordered_(OneIn(2) || IsOfOwners(mutant)),
      sets_clocks_(OneIn(3) || mutant == SegmentMutant::kNeverContradicts),
      fault_dice_(std::make_unique<SeededEntropy>(seed ^ 0x5eed)) {
  const int busy = OneIn(3) ? 0 : 20;  // some worlds lose almost no messages
  rates_ = {.refused = busy,
            .request_lost = busy,
            .answer_lost = busy + 5,
            .late = busy,
            .delayed = 300,
            .delay_max = Milliseconds(60),
            .late_max = Milliseconds(3'000),
            .time_limit = Milliseconds(200)};
  shared_.pass = [this](Milliseconds time) { Pass(time); };
  shared_.reports = [this] {
    std::map<std::string, ProviderReport> reports;
    for (const auto& host : hosts_) {
      if (const auto report = host->Report()) reports.emplace(host->address(), *report);
    }
    return reports;
  };
  operator_ = std::make_unique<SegmentOperator>(shared_);
  operator_->MakeCluster(ordered_);
  const uint64_t count = 1 + dice_.Below(4);
  for (uint64_t i = 0; i < count; ++i) {
    hosts_.push_back(std::make_unique<SegmentHost>(shared_, Cat("10.0.0.", i + 1, ":7609")));
  }
}

SegmentWorld::~SegmentWorld() = default;

SimCounts SegmentWorld::Counts() const {
  return {{"steps", static_cast<int64_t>(steps_)},
          {"numbers", static_cast<int64_t>(oracle_.given())},
          {"wasted", shared_.wasted},
          {"losses", shared_.losses},
          {"continued", shared_.continued},
          {"forgetful", shared_.forgetful},
          {"crossed", shared_.crossed},
          {"takeovers", shared_.takeovers},
          {"periods", static_cast<int64_t>(periods_.periods())}};
}

void SegmentWorld::Run() {
  for (int i = 0; i < (ordered_ ? 2 : 1) * kSteps; ++i) Step();
  // Mutants are caught by other violations. For one that prevents service, this check would only
  // wait.
  if (shared_.mutant == SegmentMutant::kNone) DemandService();
}

void SegmentWorld::Step() {
  ++steps_;
  clock_.Advance(Milliseconds(static_cast<int64_t>(dice_.Below(20))));
  peers_.Run();
  SegmentHost& host = AnyHost();
  if (host.paused()) return;
  if (!host.up() && OneIn(20)) {
    host.Start(SeededFaults(*fault_dice_, rates_));
    if (OneIn(4)) host.Disconnect();  // a start without the registry
  }
  RunHost(host);
  if (restore_in_ > 0 && --restore_in_ == 0) Restore(OneIn(3));
  if (OneIn(30)) Strike();
  // An operator who edits a form before restoring lost data must create another tag.
  if (restore_in_ == 0 && OneIn(60) && !operator_->Edit(loses_data_)) Lose();
}

void SegmentWorld::RunHost(SegmentHost& host) {
  if (host.paused()) return;
  if (host.Continues()) host.Serve();
  host.Round();
  host.Serve();
  const auto root = tree_.Peek(kMetaPath);
  if (shared_.gap && root && ParseMeta(root->data)->frozen) shared_.gap = false;
}

// Lets all hosts run, without new faults.
void SegmentWorld::Pass(Milliseconds time) {
  for (const BootMs end = clock_.Boot() + time; clock_.Boot() < end;) {
    clock_.Advance(Milliseconds(400));
    peers_.Run();
    for (const auto& host : hosts_) RunHost(*host);
  }
}

// Owners need some seconds, so there is more time between two faults.
void SegmentWorld::StrikeOrder(SegmentHost& host) {
  switch (dice_.Below(5)) {
    case 0:
      Trace("pause");
      return host.Pause(Milliseconds(dice_.Below(8'000)));
    case 1:
      Trace("cut off from each other");
      return peers_.CutOff(AnyHost().address(), host.address());
    case 2:
      return peers_.Mend();
    case 3:
      Trace("drain");
      return host.HandOver();
    default:
      return host.Reconnect();
  }
}

void SegmentWorld::Strike() {
  SegmentHost& host = AnyHost();
  if (ordered_ && !OneIn(3)) return OneIn(2) ? StrikeOrder(host) : void();
  switch (dice_.Below(12)) {
    case 0:
      Trace("kill");
      return host.Kill();
    case 1:
      Trace("clean stop");
      if (host.paused()) return;
      for (int i = 0; i < 50 && !host.Stop(); ++i) {
        clock_.Advance(Milliseconds(20));
        for (const auto& one : hosts_) {
          if (!one->paused()) one->Round();
        }
      }
      return host.Kill();
    case 2:
      return host.Disconnect();
    case 3:
    case 4:
      return host.Reconnect();
    case 5:
      database_.away = !database_.away;
      return;
    case 6:
      old_database_ = database_;
      return;
    case 7:
      if (!old_database_) return;
      Trace("the database goes back");
      database_ = *old_database_;
      return;
    case 8:
    case 9:
      return Sleep();
    case 10:
      return SetClocks();
    default:
      if (!backup_ || OneIn(2)) {
        if (restore_in_ > 0) return;
        backup_ = tree_.Save();
        if (OneIn(4)) operator_->TakeOlderDocument();
        return;
      }
      if (loses_data_ && restore_in_ == 0 && OneIn(3)) RollBackRegistry();
  }
}

// Stops everything until shortly before a midnight.
void SegmentWorld::Sleep() {
  const Milliseconds nap = operator_->BeforeMidnight() - clock_.Wall();
  if (nap < PeriodOracle::kTelling) return;
  Trace("the machines sleep");
  clock_.Advance(nap);
  shared_.slept += nap;
}

// Steps all clocks by the same time, or steps, drifts or corrects the registry's clock. The servers
// contradict a lead of 300 days.
void SegmentWorld::SetClocks() {
  if (!sets_clocks_) return;
  const auto off = static_cast<int64_t>(dice_.Below(4 * 3'600'000)) - 2 * 3'600'000;
  periods_.NoteClock();
  switch (dice_.Below(6)) {
    case 0:
    case 1:
      Trace("all clocks are set by " + std::to_string(off / 1'000) + " s");
      clock_.StepWall(Milliseconds(off));
      break;
    case 2:
      Trace("the registry's clock is set by " + std::to_string(off / 1'000) + " s");
      registry_clock_.StepWall(Milliseconds(off));
      break;
    case 3:
      registry_clock_.SetPace(static_cast<int64_t>(dice_.Below(2'000)) - 1'000);
      break;
    case 4:
      registry_clock_.SetRight();
      break;
    default: {
      const Milliseconds far = kADay * (OneIn(3) ? -300 : 300);
      Trace("the registry's clock is 300 days off");
      registry_clock_.SetOff(far, clock_.Boot() + Milliseconds(1 + dice_.Below(60'000)));
    }
  }
  periods_.NoteClock();
}

void SegmentWorld::RollBackRegistry() {
  Trace("the registry goes back");
  if (!OneIn(3)) documented_ = operator_->TakeDocument();
  tree_.Load(*backup_);
  backup_.reset();
  Lose();
}

// Loses data of the registry. Servers take no ranges between the loss and the freeze, because there
// is no guarantee for such ranges.
void SegmentWorld::Lose() {
  Trace("data are lost");
  ++shared_.losses;
  oracle_.WentBack();
  shared_.gap = true;
  if (restore_in_ == 0) restore_in_ = 1 + static_cast<int>(dice_.Below(600));
}

void SegmentWorld::Restore(bool completely) {
  Trace("the registry is restored");
  restore_in_ = 0;
  if (operator_->Restore(documented_, completely)) {
    shared_.gap = documented_ = false;
  } else {
    restore_in_ = 1 + static_cast<int>(dice_.Below(200));
  }
}

// Requires that after the end of all faults every host serves every tag within ten minutes of work.
// Weeks pass in between, because periods may be used up.
void SegmentWorld::DemandService() {
  if (restore_in_ > 0) Restore(/*completely=*/true);
  database_.away = false;
  peers_.Mend();
  periods_.NoteClock();
  registry_clock_.SetRight();
  periods_.NoteClock();
  for (const auto& host : hosts_) host->EndFaults();
  operator_->CorrectAll();
  const auto is_frozen = [&] { return ParseMeta(tree_.Peek(kMetaPath)->data)->frozen; };
  for (const auto& host : hosts_) host->TagsServed();
  std::vector<size_t> served(hosts_.size());
  for (int i = 0; i < 60'000; ++i) {
    clock_.Advance(Milliseconds(10));
    if (is_frozen() && i % 1'000 == 0)
      Restore(/*completely=*/true);  // a late reading detected the loss again
    if (i % 1'000 == 0) operator_->CorrectAll();
    peers_.Run();
    for (const auto& host : hosts_) {
      host->Round();
      host->Serve();
    }
    if (i % 500 != 499) continue;
    clock_.Advance(kRest);
    shared_.slept += kRest;
    // A host may also serve undefined tags, so it may have served more than these.
    bool all = true;
    for (const auto& host : hosts_) all &= host->TagsServed() >= operator_->tags();
    if (all) return;
  }
  std::string why;
  for (const auto& host : hosts_) why += host->Refusals();
  throw SegmentViolation("no service after the end of all faults" + why);
}

void SegmentWorld::Trace(const std::string& what) const {
  if (!trace_) return;
  std::printf("%8lld %s\n", static_cast<long long>(clock_.Boot().ms()), what.c_str());
}

}  // namespace firn
