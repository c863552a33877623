#include "tests/sim/leases/lease_operator.h"

#include <algorithm>
#include <utility>

#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/records.h"
#include "registry/operate/reserve.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr Milliseconds kReservedBefore{3'600'000};
constexpr Milliseconds kEver{int64_t{365} * 24 * 3'600'000};
constexpr Milliseconds kReleasedAhead{5'000};
constexpr size_t kRetiredMax = 1;
constexpr size_t kReservedMax = 2;

}  // namespace

void LeaseOperator::MakeCluster(uint32_t slots, int64_t lease_share) {
  slots_ = slots;
  lease_share_ = lease_share;
  MemoryCoordinator memory(shared_.tree);
  BlockingCoordinator registry(memory, shared_.clock);
  const ClusterPlan plan{
      .layout = shared_.layout, .rack_bits = 0, .workers = slots, .lease_share = lease_share};
  if (!registry.Connect(Milliseconds(0)).ok()) Die("no registry to simulate");
  if (!firn::MakeCluster(registry, plan, shared_.dice).ok()) Die("no cluster to simulate");
  uuid_ = ReadMeta(registry)->meta.uuid;
}

MachineId LeaseOperator::MachineOf(Slot slot) const {
  return *RackSplit::Make(shared_.layout, 0)->Join(slot.worker, slot.rack);
}

// --- loss and restore ----------------------------------------------------------------------------

void LeaseOperator::LoseData() {
  const bool wipe = !has_backup() || shared_.OneIn(4);
  shared_.Count("losses");
  shared_.Trace(wipe ? "the registry is wiped" : "the registry is rolled back");
  Load(wipe ? MemoryTree::Image() : *backup_);
}

void LeaseOperator::LoseAndFreeze() {
  shared_.Trace("the registry is rolled back, and frozen");
  Load(*backup_);
  Freeze();
}

void LeaseOperator::PutBack(const LeaseHost& first) {
  shared_.Count("put back");
  shared_.Trace("the registry is put back, and " + first.address() + " starts first");
  Load(*backup_);
  shared_.first_reader = first.address();
}

// Requests in flight do not reach the registry's servers, which restart.
void LeaseOperator::Load(MemoryTree::Image image) {
  for (const auto& host : hosts_) host->LoseConnection();
  shared_.tree.Load(std::move(image));
  shared_.expiring.clear();
  shared_.gap = shared_.has_lost = true;
}

RestoreFacts LeaseOperator::Facts() const {
  RestoreFacts facts{.now = shared_.clock.Wall(), .window = shared_.window};
  facts.uuid = uuid_;
  facts.layout = shared_.layout;
  facts.rack_bits = 0;
  facts.workers = slots_;
  facts.lease_share = lease_share_;
  for (const Slot slot : retired_) facts.retired.push_back(MachineOf(slot));
  for (const auto& [slot, holder] : reserved_) {
    facts.reserved.push_back({MachineOf(slot), MachineOf(slot), "another system"});
  }
  facts.skew_max = std::max(facts.skew_max, shared_.skew);
  for (const auto& host : hosts_) {
    if (const auto report = host->Report()) AddReport(*report, facts);
  }
  const auto root = shared_.tree.Peek(kMetaPath);
  const bool has_lost_restore = !root || ParseMeta(root->data)->era != era_;
  if (has_lost_restore) facts.bounds.push_back({floor_ + (facts.now - floor_set_at_)});
  return facts;
}

void LeaseOperator::Restore() {
  shared_.Count("restores");
  Restore(Facts());
}

// First corrects the registry's clock, as the runbook says, because the floor depends on it.
void LeaseOperator::Restore(const RestoreFacts& facts) {
  shared_.registry_clock.SetRight();
  MemoryCoordinator memory(shared_.tree);
  BlockingCoordinator registry(memory, shared_.clock);
  if (!registry.Connect(Milliseconds(0)).ok()) Die("no registry to restore");
  const Result<RestoreReport> restored = RestoreCluster(registry, facts, shared_.dice);
  if (!restored.ok()) {
    throw Violation(0, "the registry cannot be restored: " + restored.status().message());
  }
  floor_ = restored->floor;
  floor_set_at_ = shared_.clock.Wall();
  era_ = ParseMeta(shared_.tree.Peek(kMetaPath)->data)->era;
  shared_.gap = false;
  shared_.first_reader.clear();
  shared_.gap_claims.clear();
  shared_.Trace("restored, floor " + std::to_string(floor_.ms()));
}

void LeaseOperator::Freeze() {
  shared_.Trace("the operator freezes the cluster");
  MemoryCoordinator memory(shared_.tree);
  BlockingCoordinator registry(memory, shared_.clock);
  if (!registry.Connect(Milliseconds(0)).ok()) Die("no registry to freeze");
  ClusterMeta meta = *ParseMeta(shared_.tree.Peek(kMetaPath)->data);
  meta.frozen = true;
  meta.reason = "by the operator";
  static_cast<void>(registry.Multi({Write::Set(kMetaPath, FormatMeta(meta), Write::kAnyVersion)}));
}

bool LeaseOperator::IsFrozen() const {
  const auto meta = shared_.tree.Peek(kMetaPath);
  return meta.has_value() && ParseMeta(meta->data)->frozen;
}

bool LeaseOperator::IsWhole() const {
  return !shared_.gap && shared_.tree.Peek(kMetaPath).has_value() && !IsFrozen();
}

// --- machine ids that servers do not use ---------------------------------------------------------

void LeaseOperator::Reserve() {
  const Slot slot = AnySlot();
  if (reserved_.contains(slot)) return ReleaseReserved(slot);
  // A registry that has lost data may not know that a server has held the machine id.
  if (reserved_.size() >= kReservedMax || shared_.has_lost) return;
  MemoryCoordinator memory(shared_.tree);
  BlockingCoordinator registry(memory, shared_.clock);
  static_cast<void>(registry.Connect(Milliseconds(0)));
  if (!ReserveSlots(registry, {slot}, "another system").ok()) return;  // a server has held it
  shared_.Count("reserved");
  shared_.Trace(SlotText(slot) + " is reserved");
  const WallMs now = shared_.clock.Wall();
  const Layout& layout = shared_.layout;
  const std::string group = "another system with " + SlotText(slot);
  const Tick ever = layout.TickAt(now + kEver);
  const auto holder = shared_.oracle.Begin(MachineOf(slot), "another system", group,
                                           layout.TickAt(now - kReservedBefore));
  shared_.oracle.Share(group, ever);  // it may be reserved a second time
  shared_.oracle.Extend(holder, ever);
  shared_.highest[SlotPath(slot)] = now + kEver;  // for a registry that forgets the reservation
  reserved_.emplace(slot, holder);
}

// Returns a reserved machine id to the servers. The other system has stopped, and all its ids are
// below the first id of a server.
void LeaseOperator::ReleaseReserved(Slot slot) {
  MemoryCoordinator memory(shared_.tree);
  BlockingCoordinator registry(memory, shared_.clock);
  static_cast<void>(registry.Connect(Milliseconds(0)));
  const WallMs now = shared_.clock.Wall();
  shared_.oracle.Shrink(reserved_.at(slot), shared_.layout.FirstTickFrom(now + kReleasedAhead));
  if (!ReleaseSlots(registry, {slot}, now, kReleasedAhead).ok()) return;
  reserved_.erase(slot);
  shared_.highest[SlotPath(slot)] = now + kReleasedAhead;
  shared_.Count("no longer reserved");
  shared_.Trace(SlotText(slot) + " is no longer reserved");
}

void LeaseOperator::Retire() {
  const Slot slot = AnySlot();
  if (retired_.size() >= kRetiredMax || reserved_.contains(slot)) return;
  retired_.push_back(slot);
  shared_.Count("retired");
  shared_.Trace(SlotText(retired_.back()) + " is retired");
  Restore(Facts());
}

size_t LeaseOperator::SlotsForLeases() const {
  const auto leased = static_cast<uint32_t>(int64_t{slots_} * lease_share_ / 100);
  size_t count = 0;
  for (uint32_t worker = slots_ - leased; worker < slots_; ++worker) {
    const auto node = shared_.tree.Peek(SlotPath({0, worker}));
    if (node.has_value() && !ParseSlotRecord(node->data)->retired) ++count;
  }
  return count;
}

}  // namespace firn
