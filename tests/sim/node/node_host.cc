#include "tests/sim/node/node_host.h"

#include <algorithm>
#include <cstdio>

#include "tests/sim/violation.h"

namespace firn {
void NodeShared::Trace(const std::string& what) const {
  if (!trace) return;
  std::printf("%12lld %s\n", static_cast<long long>(clock.Boot().ms()), what.c_str());
}

// A registry ends a session some time after its timeout.
void NodeShared::ExpireLater(int64_t session) {
  const Milliseconds after(10'000 + static_cast<int64_t>(dice.Below(5'000)));
  if (session != 0) expiring.emplace_back(session, clock.Boot() + after);
}

NodeHost::NodeHost(NodeShared& shared, int index, uint32_t machine)
    : shared_(shared),
      index_(index),
      machine_(machine),
      name_("h" + std::to_string(index)),
      clock_(shared.clock) {
  const bool no_grant = !shared_.is_static && shared_.OneIn(10);
  for (uint64_t i = 0; i < shared_.machine_ids_max; ++i) {
    const uint64_t inode = 10'000u * static_cast<uint64_t>(index + 1) + 1'000u * i;
    NodeDisk& disk = disks_.emplace_back();
    disk.identity = {"boot-" + name_, {1, inode, 1}, {2, inode, 1}};
    disk.grant_on_disk = shared_.is_static;
    disk.no_grant = no_grant;
  }
}

NodeHost::~NodeHost() { Kill(); }

// --- its life ------------------------------------------------------------------------------------

IssuingNodeOptions NodeHost::Options() {
  IssuingNodeOptions options;
  options.claim.identity = {
      .owner = "", .endpoint = name_ + ":7609", .host = name_, .pid = 1, .build = "sim"};
  options.claim.window = shared_.window;
  options.id_clock.policy = shared_.strict ? ClockPolicy::kStrict : ClockPolicy::kRun;
  options.virtual_time = true;
  options.default_tag = shared_.probe;  // calls for it determine readiness
  return options;
}

NodePlace NodeHost::Place() const {
  NodePlace place{.registry = "zk://sim:2181/firn/sim", .credentials = {}, .state_dir = {}};
  if (shared_.is_directory) place.registry = "dir:///sim";
  if (shared_.is_static) place.registry = "static:" + std::to_string(machine_);
  if (!shared_.given_layout.empty()) place.layout = *Layout::Parse(shared_.given_layout);
  place.static_first_start = !has_issued_ && !is_copy_ && !adopts_;
  place.static_clock_ok = clock_ok_;
  place.static_adopt = adopts_;
  return place;
}

Result<std::unique_ptr<Coordinator>> NodeHost::Connect(Process& process, bool connected) {
  const auto wire =
      std::make_shared<NodeWire>(shared_.tree, shared_.clock, clock_,
                                 SeededFaults(shared_.dice, shared_.rates), shared_.mutant);
  if (!connected) wire->faulty().Disconnect();
  // Only the first coordinator's wire is kept. A second one, which creates the cluster, ends with
  // its link.
  if (process.wire == nullptr) process.wire = wire;
  const auto cuts = [this] {
    return shared_.cuts_one_in != 0 && shared_.OneIn(shared_.cuts_one_in);
  };
  return std::unique_ptr<Coordinator>(
      std::make_unique<NodeLink>(wire, NodeLink::World{shared_.pass, cuts, shared_.mutant}));
}

Result<std::unique_ptr<IssuingNode>> NodeHost::Open(Process& process, bool connected) {
  const OwnerName owner = *OwnerName::Make("sim", 7609, "10.0.0." + std::to_string(index_ + 1));
  NodeParts ground{.folder = std::make_unique<NodeFolder>(disk(), process.dead, shared_.mutant),
                   .kept = std::make_unique<NodeMemory>(disk(), shared_.mutant),
                   .open = [&](const std::string&, const OpenOptions&, const Clock&, Entropy&) {
                     return Connect(process, connected);
                   }};
  // The number of machine ids may differ from that of the last start.
  const uint64_t machine_ids = 1 + shared_.dice.Below(disks_.size());
  const bool shares = shared_.mutant == NodeMutant::kGrantShared;
  for (uint64_t i = 1; i < machine_ids; ++i) {
    NodeDisk& own = shares ? disk() : disks_[i];
    ground.more_folders.push_back(std::make_unique<NodeFolder>(own, process.dead, shared_.mutant));
  }
  return OpenNodeOn(std::move(ground), Place(), owner, Options(), clock_, process.entropy);
}

void NodeHost::Start(bool connected) {
  if (up() || starting_ || retired_) return;
  starting_ = true;
  Trace(connected ? "starts" : "starts without its registry");
  // If the first write ever was torn, the operator knows that no id was issued, and removes the
  // file.
  if (shared_.is_static && !has_issued_ && !is_copy_ && !disk().Permits()) disk().MakeNew();
  ghost_.reset();
  auto process = std::make_unique<Process>(shared_.dice.Next());
  auto node = Open(*process, connected);
  starting_ = false;
  if (!node.ok()) {
    Trace("does not start: " + node.status().message());
    if (process->wire != nullptr) process->wire->Die();
    return;
  }
  process->node = *std::move(node);
  if (!process->node->StartByHand().ok()) Die("a node that does not start");
  process_ = std::move(process);
  paused_until = {};
  if (!reached()) process_->goes_on = disk().GoesOnIn(clock_.Boot());
  if (shared_.mutant != NodeMutant::kDefaultBeforeRead) return;
  TagDefinition plain{.name = "default", .strategy = "snowflake"};
  IssuingNode& served = *process_->node;
  if (!served.issuer().Set(*served.catalogue().Bind(plain)).ok()) Die("no default");
}

void NodeHost::Kill() {
  if (!up()) return;
  Trace("dies");
  process_->dead = true;
  if (process_->wire != nullptr) {
    shared_.ExpireLater(session());
    process_->wire->Die();
  }
  disk().tag_writes.clear();
  for (NodeDisk& disk : disks_) disk.dies_in = 0;
  ghost_ = process_->wire;
  process_.reset();
}

void NodeHost::Reboot() {
  Kill();
  Trace("reboots");
  clock_.Reboot();
  uneven_ = false;
  if (shared_.mutant == NodeMutant::kGrantNotSynced) disk().BringBack(1 + shared_.dice.Below(3));
  const std::string boot = "boot-" + std::to_string(shared_.dice.Next());
  for (NodeDisk& disk : disks_) disk.Reboot(boot, disk.older.size());
  if (shared_.OneIn(2)) disk().Remount();
}

void NodeHost::Stop() {
  if (!up() || process_->stopping) return;
  Trace("stops");
  process_->stopping = true;
  process_->calls.clear();
  try {
    process_->node->Stop();
  } catch (const ProcessDies&) {
    Kill();
  }
}

void NodeHost::DieSoon() {
  if (!up()) return;
  NodeDisk& disk = AnyDisk();
  disk.dies_in = 1 + static_cast<int>(shared_.dice.Below(4));
  disk.death = static_cast<SimStateFolder::Death>(shared_.dice.Below(3));
}

void NodeHost::RunGhost() {
  if (ghost_ == nullptr) return;
  ghost_->faulty().Dispatch(Milliseconds(0));
  if (!ghost_->faulty().NextDue().has_value()) ghost_.reset();
}

void NodeHost::Round() {
  if (!up()) return;
  try {
    process_->node->loop().Round();
  } catch (const ProcessDies&) {
    return Kill();
  }
  if (shared_.OneIn(2)) disk().WriteTags();
  if (process_->stopping) {
    if (!process_->node->has_stopped()) return;
    Trace("has stopped");
    return Kill();
  }
  Judge();
}

int64_t NodeHost::session() const {
  return up() && process_->wire != nullptr ? process_->wire->faulty().session() : 0;
}

void NodeHost::Disconnect() {
  if (up() && process_->wire != nullptr) process_->wire->faulty().Disconnect();
}

void NodeHost::Reconnect() {
  if (up() && process_->wire != nullptr) process_->wire->faulty().Reconnect();
}

void NodeHost::EndFaults() {
  paused_until = {};
  clock_.SetRight();
  clock_ok_ = true;  // the operator has corrected the clock
  for (NodeDisk& disk : disks_) {
    disk.writes_fail = disk.removal_fails = false;
    disk.dies_in = 0;
  }
  if (!up() || process_->wire == nullptr) return;
  process_->wire->faulty().SetPlan({});
  process_->wire->faulty().Reconnect();
}

bool NodeHost::HoldsAll() const {
  if (!up()) return false;
  const std::vector<ClaimStatus> claims = process_->node->status().claims;
  return std::all_of(claims.begin(), claims.end(),
                     [](const ClaimStatus& claim) { return claim.state == ClaimState::kHolding; });
}

std::string NodeHost::Status() const {
  if (retired_) return name_ + " given up";
  if (!up()) return name_ + " down";
  const IssuingNodeStatus status = process_->node->status();
  return name_ + " " + std::string(ClaimStateName(status.claim.state)) + " " + status.claim.reason +
         (status.claim.connected ? ", connected" : "") + (status.tags_known ? ", tags known" : "") +
         ", not ready: " + status.why_not_ready.value_or("it is");
}

std::optional<ProviderReport> NodeHost::Report() const {
  if (!up()) return std::nullopt;
  const IssuingNodeStatus status = process_->node->status();
  ProviderReport report{.bound = status.claim.bound,
                        .clock_skew_ms = status.id_clock.skew.count(),
                        .high = *status.highest};
  for (const ClaimStatus& claim : status.claims) {
    if (claim.machine) report.more.push_back({*claim.machine, claim.bound});
  }
  return report;
}

void NodeHost::Trace(const std::string& what) const {
  if (shared_.trace) shared_.Trace(name_ + " " + what);
}

}  // namespace firn
