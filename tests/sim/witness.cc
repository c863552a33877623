#include "tests/sim/witness.h"

#include <algorithm>

#include "tests/sim/violation.h"

namespace firn {
namespace {

// The simulated clusters have one rack, so a worker's number is the machine id.
MachineId MachineAt(const std::string& slot_path) {
  return MachineId(static_cast<uint32_t>(std::stoul(slot_path.substr(slot_path.rfind('/') + 1))));
}

bool ReadsFrozen(const MemoryTree& tree) {
  const auto meta = tree.Peek(kMetaPath);
  return meta.has_value() && ParseMeta(meta->data)->frozen;
}

}  // namespace

void ClaimBook::Applied(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                        SimDisk& disk) {
  if (!after.nonce.zero() && after.nonce != before.nonce) last_[machine.value()] = after.nonce;
  if (!judging_) return;
  if (after.nonce.zero()) return JudgeRelease(machine, before, after, disk);
  if (after.nonce == before.nonce) return JudgeRenewal(before, after);
  JudgeClaim(before, after, disk);
}

void ClaimBook::JudgeClaim(const SlotRecord& before, const SlotRecord& after, SimDisk& disk) {
  Demand(after.bound >= before.bound, 6, "a claim lowered the bound");
  const auto meta_node = tree_.Peek(kMetaPath);
  const Result<ClusterMeta> meta = ParseMeta(meta_node->data);
  Demand(meta.ok() && !meta->frozen, 3, "a claim under a frozen or unreadable root node");
  const auto& permit = disk.Permits();
  const bool inherits = permit.has_value() && permit->nonce == before.nonce;
  const WallMs base_min = inherits ? permit->limit : std::max(before.bound, meta->floor);
  const bool fresh =
      entries_.emplace(after.nonce, Entry{meta_node->stat.version, after.bound, base_min}).second;
  Demand(fresh, 5, "a nonce was used in two attempts");
}

void ClaimBook::JudgeRenewal(const SlotRecord& before, const SlotRecord& after) {
  Demand(after.bound >= before.bound, 6, "a renewal lowered the bound");
  const auto entry = entries_.find(after.nonce);
  Demand(entry != entries_.end(), 5, "a renewal of a claim that was never made");
  Demand(tree_.Peek(kMetaPath)->stat.version == entry->second.meta_version, 7,
         "a claim was renewed under another root version than its own");
  entry->second.bound = std::max(entry->second.bound, after.bound);
}

void ClaimBook::JudgeRelease(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                             SimDisk& disk) {
  const Grant* const permit = disk.PermitsAStart();
  Demand(permit == nullptr || permit->nonce != before.nonce, 4,
         "a release was applied while the grant file still permits to go on");
  if (after.bound >= before.bound) return;
  const Tick highest = oracle_.Highest(machine);
  Demand(after.bound >= layout_.StartOf(highest + 1), 6,
         "a release lowered the bound into what was issued");
}

bool Witness::Unpromised(const Node& before, const Write& set) const {
  if (!gap_ || ReadsFrozen(tree_)) return false;
  const Nonce nonce = ParseSlotRecord(set.data)->nonce;
  const bool claims = nonce != ParseSlotRecord(before.data)->nonce;
  return !nonce.zero() && (claims || !book_.IsLast(MachineAt(set.path), nonce));
}

// Servers write the root node only to freeze it.
void Witness::JudgeFreeze(const Write& set) const {
  const auto meta = tree_.Peek(kMetaPath);
  if (!meta.has_value() || meta->stat.version != set.version || !book_.judging()) return;
  Demand(ParseMeta(meta->data)->floor < highest_bound_, 8,
         "a cluster was frozen for a bound that does not lie above its floor");
}

void Witness::Multi(std::vector<Write> writes, WriteDone done) {
  if (writes[0].kind == Write::Kind::kSet && writes[0].path == kMetaPath) {
    JudgeFreeze(writes[0]);
  }
  const bool sets_slot = writes.size() > 1 && writes[1].kind == Write::Kind::kSet;
  if (!sets_slot) return inner_->Multi(std::move(writes), std::move(done));
  const std::string path = writes[1].path;
  const auto before = tree_.Peek(path);
  if (before.has_value() && Unpromised(*before, writes[1])) {
    return inner_->Multi({Write::Check("/turned-away", 0)}, std::move(done));
  }
  inner_->Multi(std::move(writes), std::move(done));
  const auto after = tree_.Peek(path);
  if (!before.has_value() || !after.has_value() || before->stat == after->stat) return;
  book_.Applied(MachineAt(path), *ParseSlotRecord(before->data), *ParseSlotRecord(after->data),
                disk_);
}

}  // namespace firn
