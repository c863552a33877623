#include "tests/sim/world.h"

#include <algorithm>
#include <string>

#include "tests/sim/violation.h"

namespace firn {
namespace {

SimSizes SizesFor(Mutant mutant, SeededEntropy& dice) {
  SimSizes sizes = SimSizes::Draw(dice);
  Favour(mutant, sizes);
  return sizes;
}

// Returns whether the mutant permits copies: its error is injected separately for a copy and its
// original.
bool CopiesAreTold(Mutant mutant) {
  return mutant == Mutant::kNone || mutant == Mutant::kTwinUnnoticed ||
         mutant == Mutant::kCopyUnseen || mutant == Mutant::kHintWithoutClaim ||
         mutant == Mutant::kOvertakenUnnamed || mutant == Mutant::kCopiesDrawAlike;
}

}  // namespace

SimWorld::SimWorld(uint64_t seed, Mutant mutant, const SimArguments& arguments)
    : dice_(seed),
      sizes_(SizesFor(mutant, dice_)),
      clock_(kSimStart, BootMs(1)),
      registry_clock_(clock_),
      tree_(registry_clock_),
      book_(clock_, registry_clock_, tree_, oracle_, *Layout::Parse(sizes_.layout),
            sizes_.rack_bits, !arguments.duplicates),
      shared_{clock_,
              registry_clock_,
              tree_,
              oracle_,
              book_,
              dice_,
              sizes_.rates,
              mutant,
              !arguments.duplicates,
              arguments.trace,
              sizes_.strict,
              sizes_.probes,
              sizes_.generations,
              sizes_.tags},
      operator_(shared_, sizes_, hosts_) {
  operator_.MakeCluster();
  const bool copies = sizes_.copies && CopiesAreTold(mutant);
  for (int i = 0; i < sizes_.hosts; ++i) {
    const ClaimOptions options = NewOptions(i);
    const SequencerOptions sequencer{SequencerKind::kAtomic,
                                     static_cast<SequenceStart>(dice_.Below(3))};
    hosts_.push_back(std::make_unique<SimHost>(shared_, i, options, sequencer));
    if (copies) {
      copies_.push_back(std::make_unique<SimHost>(shared_, i + sizes_.hosts, options, sequencer));
      hosts_.back()->KeepCopyIn(*copies_.back());
    }
    hosts_.back()->disk().no_grant = OneIn(10);
    StartClock(*hosts_.back());
    hosts_.back()->Start(true);
  }
}

SimCounts SimWorld::Counts() const {
  return {{"steps", static_cast<int64_t>(steps_)}, {"ids", static_cast<int64_t>(oracle_.ids())}};
}

ClaimOptions SimWorld::NewOptions(int index) {
  const std::string name = "h" + std::to_string(index);
  ClaimOptions options{.identity = {.owner = name, .endpoint = name, .host = name, .build = "sim"},
                       .layout = *Layout::Parse(sizes_.layout)};
  options.window = sizes_.window;
  options.probation = sizes_.probation;
  // If copied machines cannot detect the copy, no process may start offline, as the documentation
  // requires.
  options.offline_start = dice_.Below(8) != 0 && sizes_.copies == sizes_.generations;
  options.rack = static_cast<uint32_t>(dice_.Below(sizes_.racks()));
  return options;
}

// Sets the clock of a machine at its start. It may be wrong until NTP corrects it after some
// seconds, or permanently.
void SimWorld::StartClock(SimHost& host) {
  if (sizes_.off_one_in == 0 || !OneIn(sizes_.off_one_in)) return;
  const BootMs right_at = OneIn(4) ? BootMs(INT64_MAX) : clock_.Boot() + UpTo(20'000);
  host.clock().SetOff(DrawOff(dice_), right_at);
}

SimWorld::~SimWorld() = default;

// --- time and ordinary life ----------------------------------------------------------------------

void SimWorld::Run() {
  while (steps_ < static_cast<uint64_t>(sizes_.steps)) Step();
  EndFaults();
  if (shared_.judging && DemandService() && sizes_.steady) DemandSteadiness();
}

void SimWorld::Step() {
  ++steps_;
  PassTime();
  if (!asleep_.empty()) WakeCopies();
  if (OneIn(sizes_.fault_every)) return Strike();
  Act(AnyHost());
}

void SimWorld::PassTime() {
  const uint64_t dice = dice_.Below(1'000);
  if (dice < 300) return;
  if (dice < 900) return clock_.Advance(UpTo(sizes_.strides ? 20'000 : 20));
  if (dice < 985) return clock_.Advance(UpTo(300));
  clock_.Advance(dice < 998 ? UpTo(3'000) : UpTo(40'000));
  ExpireSessions();
}

void SimWorld::Act(SimHost& host) {
  if (host.paused_until > clock_.Boot()) return;
  host.RunGhost();
  if (!host.running()) {
    if (OneIn(sizes_.start_every)) host.Start(!outage_ && !OneIn(6));
    return;
  }
  if (!host.connected() && !outage_ && OneIn(200)) host.Reconnect();
  // If rounds are far apart, the time passes L between two of them.
  const bool round = sizes_.strides || dice_.Below(10) >= 6;
  if (round) host.Step();
  if (!round || sizes_.strides) host.Issue(1 + dice_.Below(OneIn(8) ? 5'000 : 3));
}

// --- faults --------------------------------------------------------------------------------------

void SimWorld::Strike() {
  SimHost& host = AnyHost();
  const int64_t session = host.session();
  switch (sizes_.Pick(dice_)) {
    case Fault::kKill:
      host.Kill();
      break;
    case Fault::kDieSoon:
      return host.DieSoon();
    case Fault::kReboot:
      host.Reboot();
      StartClock(host);
      break;
    case Fault::kStop:
      return host.Stop();
    case Fault::kPauseInStep:
      host.PauseInStep();
      [[fallthrough]];
    case Fault::kPause:
      host.paused_until = clock_.Boot() + UpTo(OneIn(3) ? 900'000 : 20'000);
      break;
    case Fault::kCut:
      host.Disconnect();
      break;
    case Fault::kClock:
      return StrikeClock(host);
    case Fault::kDisk:
      return StrikeDisk(host);
    case Fault::kRegistry:
      return StrikeRegistry();
    case Fault::kCopy:
      return StrikeWithCopy(host);
    case Fault::kCount:
      break;
  }
  if (OneIn(2)) shared_.ExpireLater(session);
}

// Continues a copy in parallel with the original, at once or later. Or the copy replaces the
// original, as if the machine were restored to an earlier state.
void SimWorld::StrikeWithCopy(SimHost& host) {
  if (!host.has_copy()) return;
  const BootMs now = clock_.Boot();
  SimHost& copy = host.TakeSnapshot();
  asleep_.push_back({&copy, OneIn(3) ? &host : nullptr, now, now + UpTo(OneIn(2) ? 0 : 120'000)});
}

void SimWorld::WakeCopies() {
  const BootMs now = clock_.Boot();
  for (size_t i = 0; i < asleep_.size();) {
    const Asleep sleeper = asleep_[i];
    if (sleeper.until > now) {
      ++i;
      continue;
    }
    asleep_.erase(asleep_.begin() + static_cast<std::ptrdiff_t>(i));
    const auto is = [](const SimHost* which) {
      return [which](const auto& host) { return host.get() == which; };
    };
    const auto copy = std::find_if(copies_.begin(), copies_.end(), is(sleeper.copy));
    (*copy)->Resume(now - sleeper.since, now + UpTo(OneIn(2) ? 0 : 60'000));
    hosts_.push_back(std::move(*copy));
    copies_.erase(copy);
    if (outage_) hosts_.back()->Disconnect();
    if (sleeper.original == nullptr) continue;
    sleeper.original->Kill();
    const auto original = std::find_if(hosts_.begin(), hosts_.end(), is(sleeper.original));
    copies_.push_back(std::move(*original));
    hosts_.erase(original);
  }
}

void SimWorld::StrikeClock(SimHost& host) {
  // The clock may be set wrong while no process runs.
  if (!host.running() && OneIn(2)) return StartClock(host);
  switch (dice_.Below(5)) {
    case 0:
      return host.clock().StepWall(UpTo(5'000));
    case 1:
      return host.clock().StepWall(-UpTo(5'000));
    case 2:
      return host.clock().StepWall(OneIn(2) ? UpTo(4'000'000) : -UpTo(4'000'000));
    case 3:
      return host.clock().SetPace(static_cast<int64_t>(dice_.Below(2'000)) - 1'000);
    default:
      return host.clock().SetRight();
  }
}

void SimWorld::StrikeDisk(SimHost& host) {
  SimDisk& disk = host.disk();
  switch (dice_.Below(7)) {
    case 0:
      disk.writes_fail = !disk.writes_fail;
      disk.removal_fails = disk.writes_fail && OneIn(2);
      return;
    case 1:
      disk.writes_fail = disk.removal_fails = false;
      return;
    case 2:
      if (!host.running()) disk.PutInPlace(AnyHost().disk(), OneIn(2));
      return;
    case 3:
      disk.backup = disk.grant;
      return;
    case 4:
      if (!host.running()) disk.PutBackup(dice_.Below(2 * disk.older.size()), OneIn(2));
      return;
    case 5:
      return host.LoseDisk();
    default:
      if (!host.running()) disk.hint.reset();
  }
}

void SimWorld::StrikeRegistry() {
  if (!operator_.IsWhole()) return operator_.TryRestore();
  if (outage_) return SetOutage(false);
  switch (sizes_.PickForRegistry(dice_)) {
    case RegistryFault::kOutage:
      return SetOutage(true);
    case RegistryFault::kExpire:
      return tree_.Expire(AnyHost().session());
    case RegistryFault::kBackup:
      return operator_.SaveBackup();
    case RegistryFault::kLoss:
      return operator_.LoseData();
    case RegistryFault::kDelete:
      return operator_.DeleteRecord();
    case RegistryFault::kRepeat:
      return operator_.RepeatNumbers(AnyHost());
    case RegistryFault::kRestore:
      return operator_.TryRestore();
    case RegistryFault::kClock:
      return StrikeRegistryClock();
    case RegistryFault::kInit:
      return LoseAndInit();
    case RegistryFault::kCount:
      break;
  }
}

// Changes the registry's clock, as if another leader took over or its clock was set. A large step
// must differ from the steps of hosts' clocks, because two clocks with the same error confirm each
// other.
void SimWorld::StrikeRegistryClock() {
  constexpr Milliseconds kFar[] = {Milliseconds(20 * 3'600'000), Milliseconds(48 * 3'600'000),
                                   Milliseconds(300LL * 24 * 3'600'000)};
  switch (dice_.Below(6)) {
    case 0:
      return registry_clock_.StepWall(UpTo(5'000));
    case 1:
      return registry_clock_.StepWall(-UpTo(5'000));
    case 2:
      return registry_clock_.SetPace(static_cast<int64_t>(dice_.Below(2'000)) - 1'000);
    case 3:
      return registry_clock_.SetRight();
    default: {
      const Milliseconds off = kFar[dice_.Below(3)] + UpTo(600'000);
      const Milliseconds length = UpTo(OneIn(2) ? 60'000 : 4'000'000);
      registry_clock_.SetOff(OneIn(2) ? off : -off, clock_.Boot() + length);
      return shared_.Trace("the registry's clock is far off");
    }
  }
}

void SimWorld::SetOutage(bool outage) {
  outage_ = outage;
  for (const auto& host : hosts_) outage ? host->Disconnect() : host->Reconnect();
  shared_.Trace(outage ? "the registry goes away" : "the registry is back");
}

}  // namespace firn
