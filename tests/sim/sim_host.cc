#include "tests/sim/sim_host.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "tests/sim/violation.h"

namespace firn {
namespace {

// Maximum number of ticks in one call.
constexpr uint64_t kTicksMax = 20;

MemoryCoordinator& InnerOf(FaultyCoordinator& link) {
  return dynamic_cast<Witness&>(link.inner()).inner();
}

}  // namespace

void SimShared::Trace(const std::string& what) const {
  if (!trace) return;
  std::printf("%12lld %s\n", static_cast<long long>(clock.Boot().ms()), what.c_str());
}

// --- a process -----------------------------------------------------------------------------------

SimHost::SimHost(SimShared& shared, int index, ClaimOptions options, SequencerOptions sequencer)
    : shared_(shared),
      index_(index),
      options_(std::move(options)),
      sequencer_(sequencer),
      clock_(shared.clock) {
  const uint64_t inode = 1'000u * static_cast<uint64_t>(index + 1);
  disk_.identity = {"boot-0", {1, inode, 1}, {2, inode, 1}};
  disk_.grant_on_disk =
      shared.mutant == Mutant::kGrantOnDisk || shared.mutant == Mutant::kGrantSurvivesReboot;
}

SimHost::~SimHost() {
  if (running() && process_->link == nullptr) process_.reset();  // mirrors another process
  Kill();
}

std::unique_ptr<FaultyCoordinator> SimHost::NewLink(SimHost& host) {
  SimShared& shared = host.shared_;
  auto witness = std::make_unique<Witness>(std::make_unique<MemoryCoordinator>(shared.tree),
                                           shared.tree, shared.book, host.disk_, host.index_,
                                           host.highest_bound_, shared.gap);
  return std::make_unique<FaultyCoordinator>(std::move(witness), shared.clock,
                                             SeededFaults(shared.dice, shared.rates));
}

ClaimOptions SimHost::OptionsOf(int64_t pid) const {
  ClaimOptions options = options_;
  options.identity.pid = pid;
  return options;
}

SimHost::Process::Process(SimHost& host, uint64_t seed, int64_t number,
                          std::unique_ptr<FaultyCoordinator> connection)
    : pid(number),
      folder(host.disk_, host.shared_.tree, host.shared_.mutant),
      honest(seed),
      stuck(seed),
      user(host.shared_, host.clock_, host.options_.layout, host.sequencer_, seed),
      link(std::move(connection)),
      mirror(link.get()),
      seam(mirror, host.shared_.tree, host.clock_, host.shared_.mutant,
           &host.shared_.registry_clock),
      keeper(
          host.OptionsOf(pid), seam, folder, user,
          host.shared_.mutant == Mutant::kNoncePerProcess ? static_cast<Entropy&>(stuck) : honest,
          host.Hooks(*this)),
      start_permit(host.disk_.Permits()) {
  seam.OnSession([this](SessionEvent event) { keeper.OnSession(event); });
  seam.HoldsWhen([this] { return keeper.tenure() != nullptr; });
  if (host.shared_.tags) tags.emplace(seam, user.strategy(), seed + 1, host.shared_.mutant);
}

ClaimHooks SimHost::Hooks(Process& process) {
  return {
      .event =
          [&process, judging = shared_.judging && !doubt_.has_value()](const ClaimEvent& event) {
            if (event.kind != ClaimEvent::Kind::kAlarm) return;
            ++process.alarms;
            if (judging) process.seam.JudgeAlarm(event.text);
          },
      .registry_clock = [&process](
                            WallMs registry,
                            Now now) { process.user.id_clock().NoteRegistryClock(registry, now); }};
}

void SimHost::Start(bool is_connected) {
  if (running()) return;
  const uint64_t seed = shared_.dice.Next();
  doubt_.reset();  // a new process does not share the copied memory
  process_ = std::make_unique<Process>(*this, seed, ++shared_.pids, NewLink(*this));
  if (copy_ != nullptr) copy_->Follow(*this, seed);
  if (!is_connected) process_->link->Disconnect();
  const auto& permit = process_->start_permit;
  if (permit.has_value()) highest_bound_ = std::max(highest_bound_, permit->bound);
  // The hint may come from another host.
  const Result<Hint> hint = ParseHint(disk_.hint.value_or(std::string()));
  if (hint.ok()) highest_bound_ = std::max(highest_bound_, hint->last);
  paused_until = {};
  Trace("starts");
}

void SimHost::Kill() {
  if (!running()) return;
  Trace("dies");
  ForgetCopy();
  if (doubt_) shared_.book.holders().Forget(process_->user.number());
  shared_.ExpireLater(session());
  InnerOf(*process_->link).Abandon();
  process_->link->Orphan();
  ghost_ = std::move(process_->link);
  process_.reset();
}

void SimHost::Reboot() {
  Kill();
  Trace("reboots");
  clock_.Reboot();
  led_ = {};
  disk_.Reboot("boot-" + std::to_string(shared_.dice.Next()),
               shared_.dice.Below(2 * disk_.older.size()));
}

void SimHost::LoseDisk() {
  Kill();
  Trace("loses its disk for a moment");
  disk_.GoBack(shared_.dice.Below(disk_.older.size()));
}

void SimHost::Stop() {
  if (!running() || process_->stale_time.has_value()) return;
  Trace("stops");
  ForgetCopy();
  process_->folder.Releasing();
  try {
    process_->keeper.Release(Read());
  } catch (const ProcessDies&) {
    Kill();
  }
}

void SimHost::RunGhost() {
  if (ghost_ == nullptr) return;
  ghost_->Dispatch(Milliseconds(0));
  if (!ghost_->NextDue().has_value()) ghost_.reset();
}

// --- a round -------------------------------------------------------------------------------------

void SimHost::Step() {
  if (!running()) return;
  try {
    if (process_->stale_time.has_value()) {
      const KeeperTime then = *std::exchange(process_->stale_time, std::nullopt);
      process_->refused_since.reset();
      TickKeeper(then);
    } else {
      process_->link->Dispatch(Milliseconds(0));
      const KeeperTime now = Read();
      TickKeeper(now);
      if (process_->tags) process_->tags->Tick(now.clocks.boot);
      JudgeReadiness(now);
    }
  } catch (const ProcessDies&) {
    return Kill();
  }
  if (process_->keeper.state() == ClaimState::kReleased) {
    Trace("has stopped");
    if (doubt_) shared_.book.holders().Forget(process_->user.number());
    // Its session ends with it.
    ghost_.reset();
    process_.reset();
  }
}

void SimHost::PauseInStep() {
  if (!running() || process_->stale_time.has_value()) return;
  process_->link->Dispatch(Milliseconds(0));
  process_->stale_time = Read();
  if (process_->user.has_claim()) {
    process_->stale_read = process_->stale_time->clocks;
  }
}

void SimHost::DieSoon() {
  if (!running()) return;
  SeededEntropy& dice = shared_.dice;
  if (dice.Below(3) == 0) {
    process_->seam.DieAtClaim(dice.Below(2) == 0);
  } else if (dice.Below(2) == 0) {
    process_->folder.DieIn(static_cast<int>(dice.Below(4)) + 1,
                           static_cast<SimStateFolder::Death>(dice.Below(3)));
  } else {
    process_->seam.DieIn(static_cast<int>(dice.Below(3)) + 1, dice.Below(2) == 0);
  }
}

void SimHost::StopBeforeNextClaimOrRenewal(SeamCoordinator::Meanwhile meanwhile) {
  ForgetCopy();
  if (running()) process_->seam.StopBeforeNextClaimOrRenewal(std::move(meanwhile));
}

void SimHost::TickKeeper(const KeeperTime& now) {
  const ClaimState before = process_->keeper.state();
  const Tenure* const held = process_->keeper.tenure();
  const WallMs bound = held != nullptr ? held->bound() : WallMs();
  process_->keeper.Tick(now);
  if (SimHost* const follower = Follower()) follower->process_->keeper.Tick(now);
  const bool claims = process_->keeper.state() == ClaimState::kClaiming;
  if (claims && before != ClaimState::kClaiming) {  // counts from the clock readings, which may be
                                                    // from before a pause
    process_->claims_since = shared_.clock.Boot() - (clock_.Boot() - now.clocks.boot);
  }
  if (shared_.trace && before != process_->keeper.state()) Trace(Status());
  if (process_->keeper.tenure() != nullptr) {
    skew_ = std::max(skew_, std::min(now.id_time, now.clocks.wall) - shared_.clock.Wall());
    LookAtClaim();
    return JudgeIdClock(now.id_time);
  }
  if (held != nullptr) JudgeEnd(now, bound);
}

KeeperTime SimHost::Read() {
  SimHost* const follower = Follower();
  if (follower != nullptr) follower->process_->user.Time();
  return {clock_.Read(), process_->user.Time()};
}

Milliseconds SimHost::Lead() {
  return running() ? process_->user.time() - clock_.Wall() : Milliseconds(0);
}

Milliseconds SimHost::Left() {
  if (!running()) return Milliseconds(0);
  return process_->keeper.status({clock_.Read(), process_->user.Time()}).left;
}

void SimHost::Issue(uint64_t want) {
  if (!running() || !process_->user.has_claim()) return;
  // A call for more ids than L permits is refused entirely.
  want = std::min(want, kTicksMax * options_.layout.ids_per_tick());
  if (process_->stale_read.has_value()) {
    TakeAt(*std::exchange(process_->stale_read, std::nullopt), want);
  }
  Take(want);
}

bool SimHost::Serves() {
  return running() && process_->user.has_claim() && Take(1) == Verdict::kIssued;
}

Verdict SimHost::Take(uint64_t want) {
  if (SimHost* const follower = Follower()) follower->process_->user.Take(want);
  const Verdict verdict = process_->user.Take(want);
  Record();
  return verdict;
}

void SimHost::TakeAt(const Now& then, uint64_t want) {
  if (SimHost* const follower = Follower()) follower->process_->user.TakeAt(then, want);
  process_->user.TakeAt(then, want);
  Record();
}

void SimHost::Record() {
  if (process_->user.runs().empty()) return;
  const Layout& layout = options_.layout;
  const MachineId machine = process_->user.claim().machine();
  for (const IdRun& run : process_->user.runs().runs()) {
    const auto id = static_cast<uint64_t>(run.first);
    const Tick tick(static_cast<int64_t>(layout.time().In(id)));
    const bool below = layout.StartOf(tick + 1) <= process_->limit;
    Require(below || !shared_.judging, 2, "a tick was issued beyond L or R");
    if (shared_.judging) {
      shared_.book.holders().Note(machine, process_->pid, process_->user.number(),
                                  layout.StartOf(tick), layout.StartOf(tick + 1));
    }
    // Skips ids below the last bound that both copies of a machine know. They may be duplicated
    // until one copy has been detected.
    if (layout.StartOf(tick) < process_->excused) continue;
    if (doubt_.has_value() && layout.StartOf(tick) < doubt_->bound) continue;
    shared_.oracle.Record(machine, process_->user.number(),
                          {firn::Step::Kind::kTaken, tick, layout.sequence().In(id),
                           static_cast<uint64_t>(run.count)});
  }
}

// --- its connection ------------------------------------------------------------------------------

int64_t SimHost::session() const {
  if (running()) return process_->link->session();
  return ghost_ == nullptr ? 0 : ghost_->session();
}

void SimHost::Disconnect() {
  if (running()) process_->link->Disconnect();
}

void SimHost::Reconnect() {
  if (running()) process_->link->Reconnect();
}

std::optional<ProviderReport> SimHost::Report() const {
  if (!running()) return std::nullopt;
  const Now clocks = clock_.Read();
  const KeeperTime now{clocks, process_->user.time()};
  return ProviderReport{.bound = process_->keeper.status(now).bound,
                        .clock_skew_ms = (now.id_time - now.clocks.wall).count()};
}

void SimHost::EndFaults() {
  if (running()) process_->link->SetPlan({});
}

void SimHost::LoseConnection() {
  ghost_.reset();
  if (!running()) return;
  process_->link->Disconnect();
  process_->link->ForgetLate();
}

std::string SimHost::Status() {
  if (!running()) return "down";
  const ClaimStatus status = process_->keeper.status({clock_.Read(), process_->user.time()});
  return std::string(ClaimStateName(status.state)) +
         (status.slot.has_value() ? " " + SlotText(*status.slot) : std::string()) + " bound " +
         std::to_string(status.bound.ms()) + " " + status.reason;
}

void SimHost::Trace(const std::string& what) const {
  if (shared_.trace) shared_.Trace("host " + std::to_string(index_) + " " + what);
}

}  // namespace firn
