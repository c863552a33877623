#include "tests/sim/leases/lease_host.h"

#include <algorithm>
#include <cstdio>

#include "registry/cluster/records.h"
#include "registry/seam/blocking_coordinator.h"
#include "server/lease/kept_lease.h"
#include "tests/sim/leases/lease_witness.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

Mutant OfTheSeam(LeaseMutant mutant) {
  if (mutant == LeaseMutant::kNoVersionCheck) return Mutant::kNoVersionCheck;
  if (mutant == LeaseMutant::kBeforeTheWrite) return Mutant::kTimeoutIsSuccess;
  return Mutant::kNone;
}

MemoryCoordinator& InnerOf(FaultyCoordinator& link) {
  return dynamic_cast<LeaseWitness&>(link.inner()).inner();
}

}  // namespace

void LeaseShared::Trace(const std::string& what) const {
  if (!trace) return;
  std::printf("%12lld %s\n", static_cast<long long>(clock.Boot().ms()), what.c_str());
}

void LeaseShared::ExpireLater(int64_t session) {
  if (session != 0)
    expiring.emplace_back(session, clock.Boot() + UpTo(5'000) + Milliseconds(10'000));
}

void LeaseHost::Memory::Keep(std::string text, Kept done) {
  if (done_) Die("two writes of leases at once");
  text_ = std::move(text);
  done_ = std::move(done);
}

void LeaseHost::Memory::Round() {
  if (!done_ || disk_.stalled) return;
  if (!disk_.fails) disk_.promised = text_;
  if (mutant_ != LeaseMutant::kNotInFolder) disk_.leases = disk_.promised;
  Result<KeptBounds> kept = ParseKeptBounds(disk_.leases);
  if (mutant_ == LeaseMutant::kBoundsAlone && kept.ok()) {
    for (KeptBound& bound : kept->bounds) bound.claim = {};
    disk_.leases = FormatKeptBounds(*kept);
  }
  if (mutant_ == LeaseMutant::kForgetsStop && kept.ok()) {
    for (KeptBound& bound : kept->bounds) {
      auto lease = ParseKeptLease(bound.lease);
      if (!lease) continue;
      lease->lowered = false;
      bound.lease = FormatKeptLease(*lease);
    }
    disk_.leases = FormatKeptBounds(*kept);
  }
  std::exchange(done_, {})(disk_.fails ? Unavailable("no space on the disk") : Status());
}

// --- a process -----------------------------------------------------------------------------------

LeaseHost::LeaseHost(LeaseShared& shared, int index, ClaimOptions claim, size_t leases_max)
    : shared_(shared),
      index_(index),
      claim_(std::move(claim)),
      leases_max_(leases_max),
      address_("s" + std::to_string(index) + ":7609"),
      number_(shared.machines++),
      name_(address_),
      clock_(shared.clock) {
  const uint64_t inode = 1'000u * static_cast<uint64_t>(index + 1);
  disk_.claims.identity = {"boot-0", {1, inode, 1}, {2, inode, 1}};
}

LeaseHost::~LeaseHost() {
  if (mirrors()) process_.reset();
  Kill();
}

std::unique_ptr<FaultyCoordinator> LeaseHost::NewLink(LeaseHost& host) {
  LeaseShared& shared = host.shared_;
  auto witness = std::make_unique<LeaseWitness>(shared, host.address_, host.disk_.promised,
                                                std::make_unique<MemoryCoordinator>(shared.tree));
  return std::make_unique<FaultyCoordinator>(std::move(witness), shared.clock,
                                             SeededFaults(shared.dice, shared.rates));
}

LeaseTableOptions LeaseHost::LeasesOf() const {
  LeaseTableOptions options{.claim = claim_,
                            .split = *RackSplit::Make(claim_.layout, 0),
                            .address = address_,
                            .leases_max = leases_max_,
                            .boot = disk_.claims.identity.boot_id};
  if (const auto kept = ParseKeptBounds(disk_.leases); kept.ok()) options.claim.kept = *kept;
  return options;
}

ClaimHooks LeaseHost::Hooks() {
  return {.event =
              [this](const ClaimEvent& event) {
                if (mirrors()) return;
                if (event.text.find("a copy of this process") != std::string::npos) {
                  shared_.Count("twins found");
                }
                Trace(event.text);
              },
          .registry_clock =
              [this](WallMs registry, Now now) {
                if (running()) process_->user.id_clock().NoteRegistryClock(registry, now);
              }};
}

LeaseHost::Process::Process(LeaseHost& host, uint64_t seed,
                            std::unique_ptr<FaultyCoordinator> connection)
    : entropy(seed),
      user(host.shared_, host.clock_, seed),
      link(std::move(connection)),
      mirror(link.get()),
      words(mirror, host.shared_.mutant),
      seam(words, host.shared_.tree, host.clock_, OfTheSeam(host.shared_.mutant)),
      folder(host.disk_.claims),
      memory(host.disk_, host.shared_.mutant),
      keeper(host.LeasesOf().claim, seam, folder, user, entropy, host.Hooks()),
      table(host.LeasesOf(), seam, entropy, memory, host.Hooks()) {
  user.numbers = link != nullptr;
  started = host.shared_.clock.Boot();
  kept = ParseKeptBounds(host.disk_.promised).value_or({});
  seam.OnSession([this](SessionEvent event) {
    keeper.OnSession(event);
    table.OnSession(event);
  });
}

void LeaseHost::Start(bool is_connected) {
  if (running()) return;
  const uint64_t seed = shared_.dice.Next();
  process_ = std::make_unique<Process>(*this, seed, NewLink(*this));
  if (shared_.copies_servers) KeepCopy(seed);
  if (!is_connected) process_->link->Disconnect();
  paused_until = {};
  Trace("starts");
}

void LeaseHost::Kill() {
  if (!running()) return;
  Trace("dies");
  second_.reset();
  ForgetTurns();
  shared_.ExpireLater(session());
  InnerOf(*process_->link).Abandon();
  process_->link->Orphan();
  if (shared_.mutant == LeaseMutant::kStopReleases) FreeSlots();
  ghost_ = std::move(process_->link);
  process_.reset();
}

// Ends the process and its session.
void LeaseHost::End() {
  Trace("has stopped");
  if (!process_->table.stopped()) ForgetTurns();
  if (shared_.mutant == LeaseMutant::kStopReleases) FreeSlots();
  process_.reset();
}

// Forgets turns, because the next process does not know which of two copies of a program was
// extended last.
void LeaseHost::ForgetTurns() const {
  for (const LeaseShown& lease : process_->table.List()) {
    const auto claim = shared_.twins.ClaimFrom(lease.machine, shared_.layout.TickAt(lease.from));
    if (claim) shared_.oracle.Share(claim->text(), shared_.layout.TickAt(lease.until));
  }
}

void LeaseHost::FreeSlots() {
  MemoryCoordinator coordinator(shared_.tree);
  BlockingCoordinator registry(coordinator, shared_.clock);
  if (!registry.Connect(Milliseconds(0)).ok()) return;
  for (const LeaseShown& lease : process_->table.List()) {
    const std::string path = SlotPath({lease.rack, lease.worker});
    const auto node = shared_.tree.Peek(path);
    if (!node.has_value()) continue;
    SlotRecord record = *ParseSlotRecord(node->data);
    if (!record.lease.has_value() || record.lease->server != address_) continue;
    record.nonce = Nonce();
    record.bound = std::max(record.since, shared_.clock.Wall());
    static_cast<void>(
        registry.Multi({Write::Set(path, FormatSlotRecord(record), Write::kAnyVersion)}));
    const std::string live = LivePath({lease.rack, lease.worker});
    static_cast<void>(registry.Multi({Write::Erase(live, Write::kAnyVersion)}));
  }
}

void LeaseHost::Stop() {
  if (!running() || process_->stopping) return;
  Trace("stops");
  second_.reset();
  process_->stopping = true;
  process_->stale_time.reset();
  process_->stop_until = clock_.Boot() + claim_.release_wait;
  process_->table.Stop(process_->stop_until);
  process_->keeper.Release(Read());
}

// --- a round -------------------------------------------------------------------------------------

void LeaseHost::Round() {
  if (ghost_ != nullptr) {
    ghost_->Dispatch(Milliseconds(0));
    if (!ghost_->NextDue().has_value()) ghost_.reset();
  }
  if (!running()) return;
  LeaseHost* const second = InStep();
  if (process_->stale_time.has_value()) {
    TickAll(*std::exchange(process_->stale_time, std::nullopt));
    if (second != nullptr) second->TickAll(*std::exchange(second->process_->stale_time, {}));
    return;
  }
  process_->link->Dispatch(Milliseconds(0));
  process_->memory.Round();
  if (second != nullptr) second->process_->memory.Round();
  TickAll(Read());
  if (second != nullptr) second->TickAll(second->Read());
  Issue();
  if (!process_->stopping || process_->keeper.state() != ClaimState::kReleased) return;
  if (process_->table.stopped() || clock_.Boot() >= process_->stop_until) End();
}

void LeaseHost::TickAll(const KeeperTime& now) {
  process_->keeper.Tick(now);
  if (process_->keeper.tenure() != nullptr) {
    shared_.skew = std::max(shared_.skew, now.id_time - shared_.clock.Wall());
  }
  const ClaimStatus claim = process_->keeper.status(now);
  LeaseTable::Server server = LeaseTable::ServerOf(claim, process_->keeper.checked());
  if (process_->stopping) server.why_not = LeaseTable::kStopping;
  if (shared_.mutant == LeaseMutant::kResumesLate) server.resumes = server.why_not.empty();
  process_->table.Tick(now, std::move(server));
  const bool judges =
      shared_.mutant == LeaseMutant::kNone || shared_.mutant == LeaseMutant::kBoundsAlone;
  if (shared_.gap && judges) JudgeLosses();
}

// Checks loss detection: a server that has checked its claim since its start must have detected
// every other claim that begins below a bound of its leases.
void LeaseHost::JudgeLosses() const {
  const auto meta = shared_.tree.Peek(kMetaPath);
  const ClaimKeeper& keeper = process_->keeper;
  if (!meta || keeper.state() != ClaimState::kHolding || !keeper.checked()) return;
  const Result<ClusterMeta> root = ParseMeta(meta->data);
  for (const KeptBound& bound : process_->kept.bounds) {
    const auto claim = shared_.gap_claims.find(SlotPath(bound.slot));
    const bool lost = claim != shared_.gap_claims.end() && claim->second.at < process_->started &&
                      claim->second.since < bound.bound && claim->second.nonce != bound.claim;
    const bool passed = bound.bound <= shared_.clock.Wall() + Milliseconds(5'000);
    if (!lost || passed || bound.era != root->era) continue;
    Require(root->frozen, 7, "a claim below a lease's bound was not found by the lease's server");
  }
}

void LeaseHost::PauseInStep() {
  if (!running() || process_->stopping || process_->stale_time.has_value()) return;
  process_->link->Dispatch(Milliseconds(0));
  process_->memory.Round();
  process_->stale_time = Read();
  if (LeaseHost* const second = InStep()) {
    second->process_->memory.Round();
    second->process_->stale_time = second->Read();
  }
}

void LeaseHost::Issue() {
  User& user = process_->user;
  if (LeaseHost* const second = InStep()) second->process_->user.Take(1);
  if (!user.has_claim()) return;
  const Step step = user.Take(1);
  if (step.kind != Step::Kind::kTaken) return;
  if (process_->own_number != user.number()) {
    process_->own_number = user.number();
    const std::string name = "claim " + std::to_string(user.number()) + " of " + name_;
    process_->own = shared_.oracle.Begin(
        user.claim().machine(), name, process_->keeper.tenure()->terms().nonce.text(), step.tick);
  }
  shared_.oracle.Extend(process_->own, step.tick + 1);
  shared_.Count("own ids");
}

void LeaseHost::Call(const LeaseCall& call, LeaseTable::Done done) {
  process_->table.Handle(call, std::move(done));
  // The answers of the mirror are dropped: only the first process has connections to programs.
  if (LeaseHost* const second = InStep()) second->process_->table.Handle(call, [](LeaseReply) {});
}

// --- its connection ------------------------------------------------------------------------------

int64_t LeaseHost::session() const { return running() ? process_->link->session() : 0; }

void LeaseHost::Disconnect() {
  if (running()) process_->link->Disconnect();
}

void LeaseHost::Reconnect() {
  if (running()) process_->link->Reconnect();
}

void LeaseHost::LoseConnection() {
  ghost_.reset();
  if (!running()) return;
  process_->link->Disconnect();
  process_->link->ForgetLate();
}

std::optional<ProviderReport> LeaseHost::Report() const {
  if (!running()) return std::nullopt;
  const KeeperTime now{clock_.Read(), process_->user.id_clock().Last()};
  return ProviderReport{.bound = process_->keeper.status(now).bound,
                        .lease_bound = process_->table.highest_bound(),
                        .clock_skew_ms = (now.id_time - now.clocks.wall).count()};
}

bool LeaseHost::HasPromisedAfter(WallMs time) const {
  const Result<KeptBounds> kept = ParseKeptBounds(disk_.promised);
  return kept.ok() && kept->highest() > time;
}

bool LeaseHost::HasLeaseOf(const std::string& name) const {
  return running() && std::ranges::any_of(process_->table.List(), [&](const LeaseShown& lease) {
           return lease.name == name;
         });
}

std::vector<KeptBound> LeaseHost::KeptLeases() const {
  return ParseKeptBounds(disk_.leases).value_or({}).bounds;
}

void LeaseHost::EndFaults() {
  disk_.stalled = disk_.fails = false;
  clock_.SetRight();
  paused_until = {};
  if (running()) process_->link->SetPlan({});
  Start(true);
  Reconnect();
}

void LeaseHost::Trace(const std::string& what) const {
  if (shared_.trace) shared_.Trace(name_ + " " + what);
}

}  // namespace firn
