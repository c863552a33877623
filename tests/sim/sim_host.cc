#include "tests/sim/sim_host.h"

#include <cstdio>
#include <utility>

#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr int64_t kMillion = 1'000'000;

MemoryCoordinator& InnerOf(FaultyCoordinator& link) {
  return dynamic_cast<Witness&>(link.inner()).inner();
}

}  // namespace

void SimShared::Trace(const std::string& what) const {
  if (!trace) return;
  std::printf("%12lld %s\n", static_cast<long long>(clock.Boot().ms()), what.c_str());
}

// --- clocks --------------------------------------------------------------------------------------

WallMs HostClock::Wall() const {
  const int64_t drift = (truth_.Boot() - paced_).count() * parts_per_million_ / kMillion;
  return truth_.Wall() + Milliseconds(offset_ms_ + drift);
}

void HostClock::SetPace(int64_t parts_per_million) {
  offset_ms_ = (Wall() - truth_.Wall()).count();
  paced_ = truth_.Boot();
  parts_per_million_ = parts_per_million;
}

void HostClock::SetRight() {
  offset_ms_ = 0;
  parts_per_million_ = 0;
}

// --- a process -----------------------------------------------------------------------------------

SimHost::SimHost(SimShared& shared, int index, ClaimOptions options, SequencerOptions sequencer)
    : shared_(shared),
      index_(index),
      options_(std::move(options)),
      sequencer_(sequencer),
      clock_(shared.clock) {
  disk_.identity = {"boot-0", 1, 1'000u * static_cast<uint64_t>(index + 1), 1};
}

SimHost::~SimHost() { Kill(); }

std::unique_ptr<FaultyCoordinator> SimHost::NewLink(SimHost& host) {
  SimShared& shared = host.shared_;
  auto witness =
      std::make_unique<Witness>(std::make_unique<MemoryCoordinator>(shared.tree), shared.tree,
                                shared.book, host.disk_, host.highest_bound_, shared.gap);
  return std::make_unique<FaultyCoordinator>(std::move(witness), shared.clock,
                                             SeededFaults(shared.dice, shared.rates));
}

SimHost::Process::Process(SimHost& host, uint64_t seed)
    : folder(host.disk_, host.shared_.tree, host.shared_.mutant),
      honest(seed),
      stuck(seed),
      user(host.shared_, host.clock_, host.sequencer_, seed),
      link(NewLink(host)),
      seam(*link, host.shared_.tree, host.shared_.mutant),
      keeper(
          host.options_, seam, folder, user,
          host.shared_.mutant == Mutant::kNoncePerProcess ? static_cast<Entropy&>(stuck) : honest),
      start_permit(host.disk_.Permits()) {
  seam.OnSession([this](SessionEvent event) { keeper.OnSession(event); });
  seam.HoldsWhen([this] { return keeper.tenure() != nullptr; });
}

void SimHost::Start(bool is_connected) {
  if (running()) return;
  process_ = std::make_unique<Process>(*this, shared_.dice.Next());
  if (!is_connected) process_->link->Disconnect();
  const auto& permit = process_->start_permit;
  if (permit.has_value()) highest_bound_ = std::max(highest_bound_, permit->bound);
  paused_until = {};
  Trace("starts");
}

void SimHost::Kill() {
  if (!running()) return;
  Trace("dies");
  shared_.ExpireLater(session());
  InnerOf(*process_->link).Abandon();
  process_->link->Orphan();
  ghost_ = std::move(process_->link);
  process_.reset();
}

void SimHost::Reboot(bool stale_file) {
  Kill();
  Trace("reboots");
  clock_.Reboot();
  disk_.identity.boot_id = "boot-" + std::to_string(shared_.dice.Next());
  if (!stale_file) return;
  const std::string& older = disk_.older[shared_.dice.Below(disk_.older.size())];
  if (older.empty()) return;
  disk_.grant = older;
  disk_.Changed();
}

void SimHost::Stop() {
  if (!running() || process_->stale_time.has_value()) return;
  Trace("stops");
  process_->folder.Releasing();
  try {
    process_->keeper.Release({clock_.Read(), process_->user.Time()});
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
      TickKeeper(then);
    } else {
      process_->link->Dispatch(Milliseconds(0));
      TickKeeper({clock_.Read(), process_->user.Time()});
    }
  } catch (const ProcessDies&) {
    return Kill();
  }
  if (process_->keeper.state() == ClaimState::kReleased) {
    Trace("has stopped");
    // Its session ends with it.
    ghost_.reset();
    process_.reset();
  }
}

void SimHost::PauseInStep() {
  if (!running() || process_->stale_time.has_value()) return;
  process_->link->Dispatch(Milliseconds(0));
  process_->stale_time = KeeperTime{clock_.Read(), process_->user.Time()};
  if (process_->user.has_claim()) {
    process_->stale_tick = options_.layout.TickAt(process_->stale_time->id_time);
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
  if (running()) process_->seam.StopBeforeNextClaimOrRenewal(std::move(meanwhile));
}

void SimHost::TickKeeper(const KeeperTime& now) {
  skew_ = std::max(skew_, now.id_time - shared_.clock.Wall());
  const ClaimState before = process_->keeper.state();
  const bool held = process_->keeper.tenure() != nullptr;
  process_->keeper.Tick(now);
  if (shared_.trace && before != process_->keeper.state()) Trace(Status());
  if (process_->keeper.tenure() != nullptr) return LookAtClaim();
  if (!held || !shared_.judging || disk_.removal_fails) return;
  Demand(disk_.PermitsAStart() == nullptr, 4, "a claim that has ended is still permitted on file");
}

// Invariants 2 to 4 of the claim as it stands after a round.
void SimHost::LookAtClaim() {
  const Tenure* const tenure = process_->keeper.tenure();
  highest_bound_ = std::max(highest_bound_, tenure->bound());
  process_->limit = tenure->limit();
  if (!shared_.judging) return;
  const Nonce& nonce = tenure->terms().nonce;
  const ClaimBook::Entry* const entry = shared_.book.Find(nonce);
  Demand(entry != nullptr && tenure->bound() <= entry->bound, 2,
         "a claim or bound that the registry never had");
  Demand(tenure->limit() <= tenure->bound(), 2, "L lies beyond R");
  if (process_->keeper.has_file()) {
    const auto& permit = disk_.Permits();
    const bool on_file =
        permit.has_value() && permit->nonce == nonce && permit->limit >= tenure->limit();
    const bool nothing_yet = tenure->limit() == tenure->terms().base;
    Demand(on_file || nothing_yet, 2, "L is not on file");
  }
  if (process_->checked_claim == process_->user.number()) return;
  process_->checked_claim = process_->user.number();
  const bool offline = process_->start_permit.has_value() && process_->start_permit->nonce == nonce;
  const WallMs base_min = offline ? process_->start_permit->limit : entry->base_min;
  Demand(tenure->terms().base >= base_min, 3, "a claim begins below what was others'");
  Demand(shared_.oracle.IsFree(tenure->terms().machine, tenure->claim()->first_tick(),
                               options_.layout.TickAt(tenure->bound())),
         3, "a claim was given ticks that had been given out");
}

void SimHost::Issue(uint64_t want) {
  if (!running() || !process_->user.has_claim()) return;
  if (process_->stale_tick.has_value()) {
    const Tick then = *std::exchange(process_->stale_tick, std::nullopt);
    Record(process_->user.TakeAt(then, want));
  }
  Record(process_->user.Take(want));
}

bool SimHost::Serves() {
  if (!running() || !process_->user.has_claim()) return false;
  const firn::Step step = process_->user.Take(1);
  Record(step);
  return step.kind == firn::Step::Kind::kTaken;
}

void SimHost::Record(const firn::Step& step) {
  if (step.kind != firn::Step::Kind::kTaken) return;
  const Claim& claim = process_->user.claim();
  const bool below = claim.layout().StartOf(step.tick + 1) <= process_->limit;
  Demand(below || !shared_.judging, 2, "a tick was given out beyond L or R");
  shared_.oracle.Record(claim.machine(), process_->user.number(), step);
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
  const KeeperTime now{clock_.Read(), process_->user.Time()};
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
  const ClaimStatus status = process_->keeper.status({clock_.Read(), process_->user.Time()});
  return std::string(ClaimStateName(status.state)) +
         (status.slot.has_value() ? " " + SlotText(*status.slot) : std::string()) + " bound " +
         std::to_string(status.bound.ms()) + " " + status.reason;
}

void SimHost::Trace(const std::string& what) const {
  if (shared_.trace) shared_.Trace("host " + std::to_string(index_) + " " + what);
}

}  // namespace firn
