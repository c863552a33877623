#include "tests/sim/witness.h"

#include <algorithm>

#include "registry/claim/claim_options.h"
#include "tests/sim/violation.h"

namespace firn {
namespace {

bool ReadsFrozen(const MemoryTree& tree) {
  const auto meta = tree.Peek(kMetaPath);
  return meta.has_value() && ParseMeta(meta->data)->frozen;
}

}  // namespace

// The second write is not a slot's record if the root node is set twice, to avoid version -1.
bool SetsASlot(const std::vector<Write>& writes) {
  return writes.size() > 1 && writes[1].kind == Write::Kind::kSet &&
         writes[1].path.starts_with(kMachinesPath);
}

// /machines/<rack>/<worker>
MachineId ClaimBook::MachineAt(const std::string& slot_path) const {
  const size_t worker = slot_path.rfind('/') + 1;
  const size_t rack = slot_path.rfind('/', worker - 2) + 1;
  return *split_.Join(std::stoul(slot_path.substr(worker)), std::stoul(slot_path.substr(rack)));
}

void ClaimBook::Applied(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                        int64_t version, int host, SimDisk& disk, bool gap) {
  WallMs& highest = highest_[machine.value()];
  if (!after.nonce.zero() && after.nonce != before.nonce) {
    const WallMs excused = std::max(Excused(before.nonce), gap ? highest : WallMs());
    if (excused != WallMs()) excused_[after.nonce] = excused;
  }
  highest = std::max(highest, after.bound);
  Last& last = last_[machine.value()];
  if (!after.nonce.zero()) last.nonce = after.nonce;
  last.word = after.word;
  last.version = version;
  last.host = host;
  if (!judging_) return;
  if (after.nonce.zero()) return JudgeRelease(machine, before, after, disk);
  JudgeBound(before, after);
  if (after.nonce == before.nonce) return JudgeRenewal(before, after);
  JudgeClaim(before, after, disk);
}

// Checks a new bound against a limit that does not depend on a host's clock: one day ahead of the
// registry's clock, or of the time that ids have reached since an operator raised the floor.
void ClaimBook::JudgeBound(const SlotRecord& before, const SlotRecord& after) const {
  if (after.bound <= before.bound) return;
  const auto root = tree_.Peek(kMetaPath);
  const Result<ClusterMeta> meta = ParseMeta(root->data);
  if (!meta.ok()) return;
  const WallMs now = truth_.Wall();
  const Milliseconds since = std::max(now - root->stat.modified, Milliseconds(0));
  // Servers accept small steps and drifts of the registry's clock.
  const Milliseconds followed = registry_clock_.crept() + kBelievedOff;
  Require(after.bound <= std::max(now, meta->floor + since) + kPoisonAhead + followed, 9,
          "a bound was set more than a day ahead of the registry's clock");
}

void ClaimBook::JudgeClaim(const SlotRecord& before, const SlotRecord& after, SimDisk& disk) {
  Require(after.bound >= before.bound, 6, "a claim lowered the bound");
  const auto meta_node = tree_.Peek(kMetaPath);
  const Result<ClusterMeta> meta = ParseMeta(meta_node->data);
  Require(meta.ok() && !meta->frozen, 3, "a claim under a frozen or unreadable root node");
  const auto& permit = disk.Permits();
  const bool inherits = permit.has_value() && permit->nonce == before.nonce;
  const WallMs others = std::max(before.bound, meta->floor);
  const WallMs base_min = inherits ? permit->limit : others;
  const Entry made{meta_node->stat.version, after.bound, base_min, std::max(base_min, others)};
  const auto [known, fresh] = entries_.emplace(after.nonce, made);
  // A process without an answer sends the same write again. The registry may have lost the first
  // one.
  const bool again =
      lost_ && known->second.meta_version == made.meta_version && known->second.bound == made.bound;
  Require(fresh || again, 5, "a nonce was used in two attempts");
}

void ClaimBook::JudgeRenewal(const SlotRecord& before, const SlotRecord& after) {
  Require(after.bound >= before.bound, 6, "a renewal lowered the bound");
  const auto entry = entries_.find(after.nonce);
  Require(entry != entries_.end(), 5, "a renewal of a claim that was never made");
  Require(tree_.Peek(kMetaPath)->stat.version == entry->second.meta_version, 7,
          "a claim was renewed under another root version than its own");
  entry->second.bound = std::max(entry->second.bound, after.bound);
}

void ClaimBook::JudgeRelease(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                             SimDisk& disk) {
  const Grant* const permit = disk.PermitsAStart();
  Require(permit == nullptr || permit->nonce != before.nonce, 4,
          "a release was applied while the grant file still permits resuming");
  if (after.bound >= before.bound || Excused(before.nonce) != WallMs()) return;
  const Tick highest = oracle_.Highest(machine);
  Require(after.bound >= layout_.StartOf(highest + 1), 6,
          "a release lowered the bound into what was issued");
}

bool Witness::Unpromised(const Node& before, const Write& set) const {
  if (!gap_ || ReadsFrozen(tree_)) return false;
  const Nonce nonce = ParseSlotRecord(set.data)->nonce;
  const SlotRecord record = *ParseSlotRecord(before.data);
  const bool renews = !nonce.zero() && nonce == record.nonce;
  return renews && !book_.IsLast(book_.MachineAt(set.path), record, host_);
}

void Witness::Read(const std::string& path, ReadDone done, Changed changed) {
  if (path != kMetaPath) return inner_->Read(path, std::move(done), std::move(changed));
  const auto note = [this, done = std::move(done)](Result<Node> root) {
    const auto meta = root.ok() ? ParseMeta(root->data) : Result<ClusterMeta>(root.status());
    if (meta.ok()) highest_floor_ = std::max(highest_floor_, meta->floor);
    done(std::move(root));
  };
  inner_->Read(path, note, std::move(changed));
}

// Checks a write of the root node. Servers write it only to freeze the cluster.
void Witness::JudgeFreeze(const Write& set) const {
  const auto meta = tree_.Peek(kMetaPath);
  if (!meta.has_value() || meta->stat.version != set.version || !book_.judging()) return;
  const std::string reason = ParseMeta(set.data)->reason;
  // A lower floor than before also shows a loss of data.
  const WallMs floor = ParseMeta(meta->data)->floor;
  if (floor >= highest_bound_ && floor >= highest_floor_) {
    throw Violation(
        8, "a cluster was frozen for a bound that does not lie above its floor: " + reason);
  }
  if (book_.lost()) return;
  throw Violation(8, "a cluster was frozen that has lost nothing: " + reason);
}

void Witness::Multi(std::vector<Write> writes, WriteDone done) {
  if (writes[0].kind == Write::Kind::kSet && writes[0].path == kMetaPath) {
    JudgeFreeze(writes[0]);
  }
  if (!SetsASlot(writes)) return inner_->Multi(std::move(writes), std::move(done));
  const std::string path = writes[1].path;
  const auto before = tree_.Peek(path);
  if (before.has_value() && Unpromised(*before, writes[1])) {
    return inner_->Multi({Write::Check("/turned-away", 0)}, std::move(done));
  }
  inner_->Multi(std::move(writes), std::move(done));
  const auto after = tree_.Peek(path);
  if (!before.has_value() || !after.has_value() || before->stat == after->stat) return;
  const Result<SlotRecord> written = ParseSlotRecord(after->data);
  Require(written.ok(), 9, "a record was written that is unreadable");
  const SlotRecord replaced = *ParseSlotRecord(before->data);
  const bool gap = gap_ && !ReadsFrozen(tree_);
  for (const SlotRecord& record : {replaced, *written}) {
    book_.holders().NoteRecorded(book_.MachineAt(path), record.pid);
  }
  if (!gap) JudgeHolders(book_.MachineAt(path), replaced, *written, path);
  book_.Applied(book_.MachineAt(path), replaced, *written, after->stat.version, host_, disk_, gap);
}

// Checks which processes the registry names as the last holders. They must be complete for a claim
// that was resumed or that this process has lost. For other claims, only the processes in the
// record and in a grant's list are known: a grant that was restored from a backup lacks the last
// processes.
void Witness::JudgeHolders(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                           const std::string& path) {
  const auto& permit = disk_.Permits();
  std::vector<OfflineHolder> listed;
  if (permit && permit->nonce == before.nonce) listed = permit->offline;
  const bool last = !last_claim_.zero() && before.nonce == last_claim_;
  const bool resumed = after.nonce == before.nonce || last;
  if (!book_.judging() || after.nonce.zero() || after.since == before.since) return;
  if (book_.Excused(before.claim()) != WallMs()) return;
  book_.holders().JudgeBegun(machine, before, after, tree_.Peek(path + "/past"), resumed, listed);
}

}  // namespace firn
