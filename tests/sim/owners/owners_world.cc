#include "tests/sim/owners/owners_world.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "registry/cluster/slot.h"
#include "registry/owners/owner_records.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr int kSteps = 8'000;
constexpr size_t kImagesMax = 12;
constexpr int64_t kTenth = 100'000;  // in parts per million

}  // namespace

OwnersWorld::OwnersWorld(uint64_t seed, OwnersMutant mutant, bool trace)
    : dice_(seed),
      trace_(trace),
      clock_(WallMs(1'700'000'000'000)),
      tree_(clock_),
      shared_{.clock = clock_,
              .tree = tree_,
              .oracle = oracle_,
              .dice = dice_,
              .mutant = mutant,
              .trace = [this](const std::string& what) { Trace(what); }},
      fault_dice_(seed ^ 0x5eed),
      copies_machines_(OneIn(3)),
      goes_back_(OneIn(2)),
      keeps_sessions_(goes_back_ && OneIn(3)),
      calm_(100 + dice_.Below(600)) {
  const int busy = OneIn(3) ? 0 : OneIn(3) ? 60 : 20;  // some worlds lose few messages
  const std::array<int64_t, 3> delays{60, 400, 900};
  rates_ = {.refused = busy,
            .request_lost = busy,
            .answer_lost = busy + 5,
            .late = busy,
            .delayed = OneIn(2) ? 300 : 800,
            .notice_lost = 200,
            .delay_max = Milliseconds(delays.at(dice_.Below(3))),
            .late_max = Milliseconds(3'000),
            .time_limit = Milliseconds(200 + dice_.Below(1'500))};
  shared_.of_copies = [this](int64_t process, BootMs requested) {
    if (requested <= back_at_) return true;
    return std::any_of(kin_.begin(), kin_.end(), [&](const Kin& kin) {
      return (kin.first == process || kin.second == process) && requested <= kin.until;
    });
  };
  shared_.beside_rollback = [this](BootMs requested) {
    return back_at_.ms() >= 0 && requested <= LongestTerm(*hosts_.front(), back_at_);
  };
  shared_.beside_copies = [this](BootMs requested) {
    return std::any_of(kin_.begin(), kin_.end(),
                       [&](const Kin& kin) { return requested <= kin.until; });
  };
  MakeCluster();
  servers_ = 2 + dice_.Below(3);
  const auto any_window = [this] {
    return Milliseconds(1'250 + static_cast<int64_t>(dice_.Below(1'750)));
  };
  const Milliseconds same = any_window();
  for (size_t i = 0; i < servers_ + (copies_machines_ ? 1 : 0); ++i) {
    const std::string address = "10.0.0." + std::to_string(i + 1) + ":7609";
    hosts_.push_back(std::make_unique<OwnersHost>(shared_, address, AnyRate(),
                                                  goes_back_ ? same : any_window()));
  }
}

OwnersWorld::~OwnersWorld() = default;

void OwnersWorld::Apply(std::vector<Write> writes) {
  MemoryCoordinator registry(tree_);
  registry.Dispatch(Milliseconds(0));
  registry.Multi(std::move(writes), [](const WriteOutcome& outcome) {
    Require(outcome.status.ok(), 0, outcome.status.message().c_str());
  });
  registry.Dispatch(Milliseconds(0));
}

void OwnersWorld::MakeCluster() {
  meta_ = {.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab",
           .era = Nonce::Draw(dice_),
           .layout = "firn",
           .floor = {},
           .reason = {}};
  constexpr Lifetime kStays = Lifetime::kPersistent;
  std::vector<Write> writes{Write::Create("/", FormatMeta(meta_), kStays),
                            Write::Create(EraPath(meta_.era), "", kStays)};
  for (size_t i = 0; i < shared_.partitions; ++i) {
    writes.push_back(Write::Create(NumbersPath(i), "1", kStays));
  }
  if (!OneIn(4)) {  // otherwise the servers create the missing nodes
    for (const char* path : {kOwnersPath, kBeatsPath, kPartitionsPath}) {
      writes.push_back(Write::Create(path, "", kStays));
    }
    for (size_t i = 0; i < kPartitions; ++i) {
      writes.push_back(Write::Create(PartitionPath(i), FormatPartitionOwner({}), kStays));
    }
  }
  Apply(std::move(writes));
}

// Most clocks have the largest permitted error.
int64_t OwnersWorld::AnyRate() {
  const auto parts = static_cast<int64_t>(dice_.Below(8 * kTenth)) - 4 * kTenth;
  return std::clamp(parts, -kTenth, kTenth);
}

FaultPlan OwnersWorld::NewPlan() { return SeededFaults(fault_dice_, rates_); }

void OwnersWorld::Run() {
  for (int i = 0; i < kSteps; ++i) Step();
  // Most mutants are caught by other violations. For one that prevents service, this check would
  // only wait.
  if (shared_.mutant == OwnersMutant::kNone || IsOfHandOver(shared_.mutant)) {
    DemandService();
    if (OneIn(4)) DemandHandOver();
  }
  for (const auto& host : hosts_) CountWrites(*host);
}

void OwnersWorld::Step() {
  ++steps_;
  clock_.Advance(Milliseconds(static_cast<int64_t>(dice_.Below(12))));
  OwnersHost& host = AnyHost();
  if (!host.up() && MayStart(host) && OneIn(100)) {
    host.Start(NewPlan(), copies_machines_);
    Trace(host.address() + " starts");
  }
  Change(host);
  host.Round();
  CheckTerms();
  CheckTakeovers(false);
  if (OneIn(calm_)) Strike();
  if (meta_.frozen && OneIn(400)) EditRoot();
  if (next_in_ > 0 && --next_in_ == 0) std::exchange(next_fault_, nullptr)();
  if (goes_back_ && OneIn(60)) {
    images_.push_back(tree_.Save());
    if (images_.size() > kImagesMax) images_.erase(images_.begin());
  }
}

// Ends lasting faults of the host at random.
void OwnersWorld::Change(OwnersHost& host) {
  if (!host.up()) return;
  if (!host.permitted() && OneIn(150)) host.Permit(true);
  if (host.paused() && &host != sleeper_ && OneIn(150)) {
    Trace(host.address() + " continues");
    host.Pause(false);
  }
  FaultyCoordinator& link = *host.process().link();
  if (link.connected()) return;
  if (OneIn(120)) {
    Trace(host.address() + " is connected");
    link.Reconnect();
  } else if (OneIn(300)) {
    tree_.Expire(link.session());
  }
}

void OwnersWorld::Strike() {
  OwnersHost& host = AnyHost();
  if (!host.up()) return;
  // The rarest failures need faults with several steps, so each kind of world has more of one such
  // fault.
  if (OneIn(3)) return goes_back_ ? Release(host) : PauseAndReturn(host);
  switch (dice_.Below(20)) {
    case 0:
      Trace(host.address() + " is killed");
      return Kill(host);
    case 1:
      if (OneIn(2)) return StopTogether(host);
      Trace(host.address() + " hands over");
      return host.HandOver();
    case 2:
    case 3:
    case 4:
      Trace(host.address() + " is paused");
      return host.Pause(true);
    case 5:
    case 6:
      Trace(host.address() + " is disconnected");
      return host.process().link()->Disconnect();
    case 7:
      Trace(host.address() + " loses its session");
      return tree_.Expire(host.process().link()->session());
    case 8:
    case 9:
      return Copy(host);
    case 10:
      if (images_.empty()) return;
      return RollBack(images_[dice_.Below(images_.size())]);
    case 11:
      return CutOff(host);
    case 12:
    case 13:
      return Release(host);
    case 14:
    case 15:
      return PauseAndReturn(host);
    case 16:
      return LoseRenewal(host);
    case 17:
    case 18:
      return HoldRenewal(host);
    default:
      return EditRoot();
  }
}

void OwnersWorld::CountWrites(const OwnersHost& host) {
  if (!host.up()) return;
  takeovers_ += host.process().seam().takeovers();
  releases_ += host.process().seam().releases();
}

void OwnersWorld::Kill(OwnersHost& host) {
  CountWrites(host);
  host.Kill();
}

void OwnersWorld::Copy(OwnersHost& host) {
  if (!host.has_copy() || host.paused()) return;
  for (const auto& other : hosts_) {
    if (other->up()) continue;
    const BootMs until = LongestTerm(host, clock_.Boot());
    const BootMs term_until = host.clock().Boot() + host.window();
    host.Copy(*other, NewPlan(), AnyRate());
    kin_.push_back({host.process().number(), other->process().number(), until, term_until});
    ++copies_;
    Trace(host.address() + " is copied");
    return;
  }
}

void OwnersWorld::Next(std::function<void()> fault, uint64_t steps_max) {
  if (next_in_ > 0) return;
  next_fault_ = std::move(fault);
  next_in_ = 1 + static_cast<int>(dice_.Below(steps_max));
}

// Disconnects a server, then rolls the registry back to its present state, and reconnects the
// server.
void OwnersWorld::CutOff(OwnersHost& host) {
  Trace(host.address() + " is disconnected");
  host.process().link()->Disconnect();
  if (!goes_back_) return;
  const auto back = [this, &host, image = tree_.Save()] {
    RollBack(image);
    for (const auto& other : hosts_) {
      if (OneIn(2)) other->Pause(true);  // does not notice the rollback
    }
    host.Pause(false);
    if (host.up()) host.process().link()->Reconnect();
  };
  Next(back, 500);
}

void OwnersWorld::Release(OwnersHost& host) {
  Trace(host.address() + " cannot be reached by others");
  host.Permit(false);
  if (goes_back_) GoBackBeforeTakeover(100);
}

// Rolls the registry back to a state in which a partition was free that a server has taken since.
// Pauses that server, so that others take the partition.
void OwnersWorld::GoBackBeforeTakeover(int steps_max) {
  for (size_t i = 0; i < kPartitions; ++i) {
    const std::optional<Node> node = tree_.Peek(PartitionPath(i));
    if (!node || !ParsePartitionOwner(node->data)->tenure.zero()) continue;
    return GoBack(std::make_shared<MemoryTree::Image>(tree_.Save()), i, 400);
  }
  if (steps_max > 0) Next([=, this] { GoBackBeforeTakeover(steps_max - 1); }, 1);
}

void OwnersWorld::GoBack(const std::shared_ptr<MemoryTree::Image>& image, size_t partition,
                         int steps_max) {
  for (const auto& host : hosts_) {
    if (!host->up() || !host->process().MayTake(partition)) continue;
    RollBack(*image);
    for (const auto& other : hosts_) other->Permit(true);
    Trace(host->address() + " sleeps");
    host->Pause(true);
    sleeper_ = host.get();
    return Next([this] { std::exchange(sleeper_, nullptr)->Pause(false); },
                keeps_sessions_ ? 1500 : 400);
  }
  if (steps_max > 0) Next([=, this] { GoBack(image, partition, steps_max - 1); }, 1);
}

// Makes all servers but one hand over. That one may have started a short time ago.
void OwnersWorld::StopTogether(OwnersHost& stays) {
  Trace("all but " + stays.address() + " hand over");
  for (const auto& other : hosts_) {
    if (other.get() != &stays) other->HandOver();
  }
}

// Loses a renewal or delays its answer, and then breaks the connection.
void OwnersWorld::LoseRenewal(OwnersHost& host) {
  const bool lost = OneIn(2);
  Trace(host.address() + (lost ? " loses writes" : " gets late answers"));
  for (int i = 0; i < 3; ++i) {
    Fate fate{.kind = lost ? Fate::Kind::kRequestLost : Fate::Kind::kDone};
    fate.answer_after = Milliseconds(lost ? 20 : 900);
    host.process().link()->Script(Verb::kMulti, fate);
  }
  const auto cut = [&host] {
    if (host.up()) host.process().link()->Disconnect();
  };
  Next(cut, 400);
}

// Delays the next write of a server until others may have taken its partitions.
void OwnersWorld::HoldRenewal(OwnersHost& host) {
  Trace(host.address() + " sends a write that is held");
  const auto tenths = [&](uint64_t from, uint64_t to) {
    return host.window() * static_cast<int64_t>(from + dice_.Below(to - from + 1)) / 10;
  };
  FaultyCoordinator& link = *host.process().link();
  if (OneIn(2)) {
    link.Script(Verb::kMulti, {.kind = Fate::Kind::kRequestLost, .answer_after = tenths(2, 8)});
  }
  link.Script(Verb::kMulti, {.apply_after = OneIn(2) ? tenths(4, 10) : tenths(10, 16)});
}

// Rolls the registry back, except for the ledgers. Other rules protect against lost ledgers: the
// cluster is frozen.
void OwnersWorld::RollBack(MemoryTree::Image image) {
  Trace("the registry goes back");
  std::vector<std::string> highs;
  for (size_t i = 0; i < shared_.partitions; ++i) {
    highs.push_back(tree_.Peek(NumbersPath(i))->data);
  }
  tree_.Load(std::move(image),
             keeps_sessions_ ? MemoryTree::Sessions::kStay : MemoryTree::Sessions::kEnd);
  images_.clear();
  if (keeps_sessions_) back_at_ = clock_.Boot();
  // The renewal that ended the other copy's time may be undone. All hosts have the same window.
  for (Kin& kin : kin_) kin.until = LongestTerm(*hosts_.front(), clock_.Boot());
  for (size_t i = 0; i < shared_.partitions; ++i) {
    Apply({Write::Set(NumbersPath(i), highs[i], Write::kAnyVersion)});
  }
  meta_ = ParseMeta(tree_.Peek(kMetaPath)->data).value();
  frozen_at_ = clock_.Boot();
  CheckTakeovers(true);
  ++rollbacks_;
  for (const auto& host : hosts_) {
    host->LoseRequests();
    if (host->up() && OneIn(2)) HoldRenewal(*host);
  }
}

// Changes the floor, freezes the cluster, or unfreezes it, perhaps in another era.
void OwnersWorld::EditRoot() {
  std::vector<Write> writes;
  if (!meta_.frozen && OneIn(2)) {
    meta_.floor += Milliseconds(1);
  } else if (!meta_.frozen) {
    meta_.frozen = true;
    frozen_at_ = clock_.Boot();
    meta_.reason = "a test";
  } else {
    meta_.frozen = false;
    meta_.reason.clear();
    if (OneIn(2)) {
      writes.push_back(Write::Erase(EraPath(meta_.era), Write::kAnyVersion));
      meta_.era = Nonce::Draw(dice_);
      writes.push_back(Write::Create(EraPath(meta_.era), "", Lifetime::kPersistent));
    }
  }
  Trace(meta_.frozen ? "the cluster is frozen" : "the root node is set");
  writes.push_back(Write::Set(kMetaPath, FormatMeta(meta_), Write::kAnyVersion));
  Apply(std::move(writes));
}

// Pauses a server. When it continues, the other servers become unreachable and release their
// partitions, so that it takes them again.
void OwnersWorld::PauseAndReturn(OwnersHost& host) {
  Trace(host.address() + " is paused");
  host.Pause(true);
  const auto back = [this, &host] {
    Trace(host.address() + " continues, and the others cannot be reached");
    for (const auto& other : hosts_) other->Permit(other.get() == &host);
    host.Pause(false);
  };
  Next(back, 900);
}

void OwnersWorld::Trace(const std::string& what) const {
  if (!trace_) return;
  std::printf("%8lld %s\n", static_cast<long long>(clock_.Boot().ms()), what.c_str());
}

}  // namespace firn
