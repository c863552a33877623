#include "tests/sim/world.h"

#include <algorithm>
#include <cstdio>

#include "registry/blocking_coordinator.h"
#include "registry/cluster_setup.h"
#include "registry/restore.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr WallMs kStart{1'750'000'000'000};
constexpr int kHostsMax = 5;
constexpr uint64_t kSlotsMax = 6;
// From the end of all faults, or from the last bound that had to be waited for.
constexpr Milliseconds kServiceWithin{30 * 60'000};
constexpr Milliseconds kWaitMax{24 * 3'600'000};
constexpr Milliseconds kFineUntil{60'000};

}  // namespace

SimSizes SimSizes::Draw(SeededEntropy& dice) {
  static constexpr int64_t kWindowsMs[] = {20'000, 20'000, 60'000, 600'000};
  static constexpr const char* kLayouts[] = {"firn",
                                             "time:31s machine:10 sequence:22 epoch:2024-01-01",
                                             "time:41 machine:10 sequence:3 epoch:2024-01-01"};
  const auto below = [&dice](uint64_t n) { return static_cast<int>(dice.Below(n)); };
  SimSizes sizes;
  sizes.hosts = below(kHostsMax) + 1;
  sizes.slots = dice.Below(3) == 0 ? 1 : static_cast<uint32_t>(dice.Below(kSlotsMax)) + 1;
  // Some seeds have everything; others have faults that strike often and some that never do: all of
  // them at once hide what two of them do together.
  sizes.weights = {4, 6, 4, 5, 3, 5, 6, 5, 4, 8};
  if (dice.Below(2) == 0) {
    for (uint64_t& weight : sizes.weights) weight = dice.Below(3) == 0 ? 0 : dice.Below(8);
    sizes.weights[dice.Below(sizes.weights.size())] += 1;
  }
  sizes.steps = 2'000 + below(20'000);
  sizes.fault_every = 20 + dice.Below(600);
  sizes.start_every = 1 + dice.Below(dice.Below(3) == 0 ? 2'000 : 60);
  sizes.window = Milliseconds(kWindowsMs[dice.Below(4)]);
  sizes.probation = Milliseconds(dice.Below(4) == 0 ? 2'000 : 0);
  sizes.layout = kLayouts[dice.Below(3)];
  sizes.rates = {.refused = below(30),
                 .request_lost = below(60),
                 .answer_lost = below(120),
                 .late = below(120),
                 .delayed = below(500),
                 .notice_lost = 0,
                 .delay_max = Milliseconds(10 + below(2'000)),
                 .late_max = Milliseconds(100 + below(30'000)),
                 .time_limit = Milliseconds(200 + below(3'000))};
  if (dice.Below(4) == 0) sizes.rates = {};  // a registry that answers: other faults show
  return sizes;
}

Fault SimSizes::Pick(SeededEntropy& dice) const {
  uint64_t sum = 0;
  for (const uint64_t weight : weights) sum += weight;
  uint64_t chosen = dice.Below(sum);
  size_t fault = 0;
  while (chosen >= weights[fault]) chosen -= weights[fault++];
  return static_cast<Fault>(fault);
}

std::string SimSizes::text() const {
  return std::to_string(hosts) + " hosts, " + std::to_string(slots) + " slots, window " +
         std::to_string(window.count()) + " ms, a fault in " + std::to_string(fault_every) +
         " steps, layout " + layout;
}

SimWorld::SimWorld(uint64_t seed, Mutant mutant, bool judging, bool trace)
    : dice_(seed),
      sizes_(SimSizes::Draw(dice_)),
      clock_(kStart, BootMs(1)),
      tree_(clock_),
      book_(tree_, oracle_, *Layout::Parse(sizes_.layout), judging),
      shared_{clock_, tree_, oracle_, book_, dice_, sizes_.rates, mutant, judging, trace} {
  MakeRegistry();
  for (int i = 0; i < sizes_.hosts; ++i) {
    const std::string name = "h" + std::to_string(i);
    ClaimOptions options{
        .identity = {.owner = name, .endpoint = name, .host = name, .build = "sim"},
        .layout = *Layout::Parse(sizes_.layout)};
    options.window = sizes_.window;
    options.probation = sizes_.probation;
    options.offline_start = dice_.Below(8) != 0;
    const SequencerOptions sequencer{SequencerKind::kAtomic,
                                     static_cast<SequenceStart>(dice_.Below(3))};
    hosts_.push_back(std::make_unique<SimHost>(shared_, i, std::move(options), sequencer));
    hosts_.back()->Start(true);
  }
}

SimWorld::~SimWorld() = default;

void SimWorld::MakeRegistry() {
  MemoryCoordinator coordinator(tree_);
  BlockingCoordinator registry(coordinator, clock_);
  const Layout layout = *Layout::Parse(sizes_.layout);
  const Status connected = registry.Connect(Milliseconds(0));
  const Status made =
      MakeCluster(registry, {.layout = layout, .rack_bits = 0, .workers = sizes_.slots}, dice_);
  if (!connected.ok() || !made.ok()) Die("no cluster to simulate");
  uuid_ = ReadMeta(registry)->meta.uuid;
}

// --- time and ordinary life ----------------------------------------------------------------------

void SimWorld::Run() {
  while (steps_ < static_cast<uint64_t>(sizes_.steps)) Step();
  EndFaults();
  if (shared_.judging) DemandService();
}

void SimWorld::Step() {
  ++steps_;
  PassTime();
  if (OneIn(sizes_.fault_every)) return Strike();
  Act(AnyHost());
}

void SimWorld::PassTime() {
  const uint64_t dice = dice_.Below(1'000);
  if (dice < 300) return;
  if (dice < 900) return clock_.Advance(UpTo(20));
  if (dice < 985) return clock_.Advance(UpTo(300));
  clock_.Advance(dice < 998 ? UpTo(3'000) : UpTo(40'000));
  ExpireSessions();
}

// A session that was not heard of for its time-out may end, and does so sooner or later.
void SimWorld::ExpireSessions() {
  const BootMs now = clock_.Boot();
  auto& expiring = shared_.expiring;
  for (size_t i = 0; i < expiring.size();) {
    if (expiring[i].second > now) {
      ++i;
      continue;
    }
    tree_.Expire(expiring[i].first);
    expiring[i] = expiring.back();
    expiring.pop_back();
  }
}

void SimWorld::Act(SimHost& host) {
  if (host.paused_until > clock_.Boot()) return;
  host.RunGhost();
  if (!host.running()) {
    if (OneIn(sizes_.start_every)) host.Start(!outage_ && !OneIn(6));
    return;
  }
  if (!host.connected() && !outage_ && OneIn(200)) host.Reconnect();
  if (dice_.Below(10) < 6) {
    host.Issue(1 + dice_.Below(OneIn(8) ? 5'000 : 3));
  } else {
    host.Step();
  }
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
      host.Reboot(OneIn(2));
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
    case Fault::kCount:
      break;
  }
  if (OneIn(2)) shared_.ExpireLater(session);
}

void SimWorld::StrikeClock(SimHost& host) {
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
  switch (dice_.Below(4)) {
    case 0:
      disk.writes_fail = !disk.writes_fail;
      disk.removal_fails = disk.writes_fail && OneIn(2);
      return;
    case 1:
      disk.writes_fail = disk.removal_fails = false;
      return;
    case 2:
      return CopyGrant(AnyHost(), host);
    default:
      if (!host.running()) disk.hint.reset();
  }
}

// Somebody copies a state folder, or puts an older copy of its own in place: new inodes.
void SimWorld::CopyGrant(SimHost& from, SimHost& to) {
  if (to.running()) return;
  SimDisk& source = from.disk();
  const std::string& older = source.older[dice_.Below(source.older.size())];
  SimDisk& disk = to.disk();
  disk.grant = OneIn(2) || older.empty() ? source.grant : older;
  disk.hint = source.hint;
  ++disk.identity.inode;
  disk.Changed();
}

void SimWorld::StrikeRegistry() {
  const uint64_t dice = dice_.Below(20);
  if (shared_.gap) return Restore();
  if (outage_ || dice < 4) {
    outage_ = !outage_;
    for (const auto& host : hosts_) {
      outage_ ? host->Disconnect() : host->Reconnect();
    }
    return Trace(outage_ ? "the registry goes away" : "the registry is back");
  }
  if (dice < 10) return tree_.Expire(AnyHost().session());
  if (dice < 14) {
    backup_ = tree_.Save();
    return;
  }
  if (dice < 16) return RollBack();
  if (dice == 16) Restore();
}

void SimWorld::RollBack() {
  const bool wipe = !backup_.has_value() || OneIn(4);
  Trace(wipe ? "the registry is wiped" : "the registry is rolled back");
  if (wipe) {
    tree_.Wipe();
  } else {
    tree_.Load(*backup_);
  }
  shared_.expiring.clear();
  // Sessions that came back with the data are heard of by nobody.
  for (uint32_t worker = 0; worker < sizes_.slots; ++worker) {
    const auto live = tree_.Peek(LivePath({0, worker}));
    if (!live.has_value()) continue;
    shared_.ExpireLater(live->stat.ephemeral_owner);
  }
  shared_.gap = true;
}

// The operator: knows every bound and every skew that any server ever reported.
void SimWorld::Restore() {
  MemoryCoordinator coordinator(tree_);
  BlockingCoordinator registry(coordinator, clock_);
  RestoreFacts facts{.now = clock_.Wall(), .window = sizes_.window};
  facts.uuid = uuid_;
  facts.layout = *Layout::Parse(sizes_.layout);
  facts.rack_bits = 0;
  facts.workers = sizes_.slots;
  for (const auto& host : hosts_) {
    facts.bounds.push_back(host->ReportedBound());
    facts.skew_max = std::max(facts.skew_max, host->skew());
  }
  const Status connected = registry.Connect(Milliseconds(0));
  const Result<RestoreReport> restored = RestoreCluster(registry, facts, dice_);
  if (!connected.ok() || !restored.ok()) throw Violation(0, "the registry cannot be restored");
  shared_.gap = false;
  Trace("restored, floor " + std::to_string(restored->floor.ms()));
}

// --- the end of all faults -----------------------------------------------------------------------

void SimWorld::EndFaults() {
  Trace("no more faults");
  sizes_.rates = {};
  outage_ = false;
  if (shared_.gap || ReadsFrozen()) Restore();
  for (const auto& host : hosts_) {
    host->disk().writes_fail = host->disk().removal_fails = false;
    host->clock().SetRight();
    host->paused_until = {};
    host->EndFaults();
    host->Start(true);
    host->Reconnect();
  }
}

// As many hosts as there are slots have to serve at one moment, sooner or later.
void SimWorld::DemandService() {
  const BootMs begin = clock_.Boot();
  BootMs limit = begin + kServiceWithin;
  const size_t wanted = std::min(hosts_.size(), static_cast<size_t>(sizes_.slots));
  // A host that comes back may freeze the cluster once more, with a bound that nobody knew of.
  int restores = sizes_.hosts;
  while (clock_.Boot() < limit) {
    clock_.Advance(Milliseconds(clock_.Boot() < begin + kFineUntil ? 50 : 1'000));
    ExpireSessions();
    if (HostsServing() >= wanted) return;
    if (ReadsFrozen() && restores-- > 0) Restore();
    if (clock_.Boot() < limit) continue;
    const Milliseconds wait = LongestWait();
    if (wait > Milliseconds(0)) limit = std::min(begin + kWaitMax, limit + wait + kServiceWithin);
  }
  std::string states;
  for (const auto& host : hosts_) states += "\n  " + host->Status();
  throw Violation(8, "no service after the end of all faults" + states + RegistryText());
}

size_t SimWorld::HostsServing() {
  size_t serving = 0;
  for (const auto& host : hosts_) {
    ++steps_;
    host->RunGhost();
    host->Start(true);
    host->Step();
    if (host->Serves()) ++serving;
  }
  return serving;
}

// A slot whose holder died is left alone up to its bound. A clock that was wrong may have put that
// far ahead of the rest of the cluster.
Milliseconds SimWorld::LongestWait() const {
  const Node root = *tree_.Peek(kMetaPath);
  const WallMs here =
      std::max(clock_.Wall(), ParseMeta(root.data)->floor + (clock_.Wall() - root.stat.modified));
  Milliseconds longest{0};
  for (uint32_t worker = 0; worker < sizes_.slots; ++worker) {
    if (tree_.Peek(LivePath({0, worker})).has_value()) continue;
    const Node record = *tree_.Peek(SlotPath({0, worker}));
    longest = std::max(longest, ParseSlotRecord(record.data)->bound - here);
  }
  return longest;
}

bool SimWorld::ReadsFrozen() const {
  const auto meta = tree_.Peek(kMetaPath);
  return !meta.has_value() || ParseMeta(meta->data)->frozen;
}

// What stands in the registry, for whoever reads about a broken promise.
std::string SimWorld::RegistryText() const {
  std::string text = "\n  it is " + std::to_string(clock_.Wall().ms());
  if (const auto meta = tree_.Peek(kMetaPath)) text += "\n  " + meta->data;
  for (uint32_t worker = 0; worker < sizes_.slots; ++worker) {
    const Slot slot{0, worker};
    const auto record = tree_.Peek(SlotPath(slot));
    text += "\n  " + SlotText(slot) + (tree_.Peek(LivePath(slot)).has_value() ? " live " : " ") +
            (record.has_value() ? record->data : "gone");
  }
  return text;
}

void SimWorld::Trace(const std::string& what) const {
  if (!shared_.trace) return;
  std::printf("%12lld %s\n", static_cast<long long>(clock_.Boot().ms()), what.c_str());
}

}  // namespace firn
