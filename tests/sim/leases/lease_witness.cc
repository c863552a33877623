#include "tests/sim/leases/lease_witness.h"

#include <algorithm>

#include "common/id/rack_split.h"
#include "registry/cluster/slot.h"
#include "registry/state/kept_bounds.h"
#include "tests/sim/violation.h"
#include "tests/sim/witness.h"

namespace firn {

void LeaseWitness::Multi(std::vector<Write> writes, WriteDone done) {
  const bool freezes = writes[0].kind == Write::Kind::kSet && writes[0].path == kMetaPath;
  if (freezes) shared_.Count(shared_.has_lost ? "freezes" : "freezes by copies");
  const bool may_freeze = shared_.has_lost || shared_.copied.contains(address_);
  if (freezes && shared_.mutant == LeaseMutant::kNone && !may_freeze) {
    throw Violation(
        4, "a registry that has lost nothing is frozen: " + ParseMeta(writes[0].data)->reason);
  }
  if (!SetsASlot(writes)) return inner_->Multi(std::move(writes), std::move(done));
  const std::string path = writes[1].path;
  const Result<SlotRecord> record = ParseSlotRecord(writes[1].data);
  Require(record.ok(), 4, "a record is written that is unreadable");
  if (IsUnpromised(path, *record)) {
    return inner_->Multi({Write::Check("/turned-away", 0)}, std::move(done));
  }
  const auto before = shared_.tree.Peek(path);
  inner_->Multi(std::move(writes), std::move(done));
  const auto after = shared_.tree.Peek(path);
  if (!before.has_value() || !after.has_value() || before->stat == after->stat) return;
  shared_.last_writes[path] = {record->nonce, address_};
  NoteApplied(path, *record);
  const SlotRecord replaced = *ParseSlotRecord(before->data);
  const bool claims = !record->nonce.zero() && record->nonce != replaced.nonce;
  Require(!claims || !replaced.retired, 2, "a retired or reserved machine id is claimed");
}

void LeaseWitness::NoteApplied(const std::string& path, const SlotRecord& record) {
  if (record.nonce.zero()) return;
  const auto worker = static_cast<uint32_t>(std::stoul(path.substr(path.rfind('/') + 1)));
  const Layout& layout = shared_.layout;
  shared_.twins.NoteClaim(*RackSplit::Make(layout, 0)->Join(worker, 0),
                          layout.FirstTickFrom(record.since), record.nonce);
  shared_.twins.NoteApplied(path, record, layout.TickAt(record.bound));
}

bool LeaseWitness::IsUnpromised(const std::string& path, const SlotRecord& record) const {
  if (!shared_.gap) return false;
  const auto meta = shared_.tree.Peek(kMetaPath);
  const auto node = shared_.tree.Peek(path);
  if (!meta.has_value() || !node.has_value()) return false;
  if (ParseMeta(meta->data)->frozen || record.nonce.zero()) return false;
  const Nonce before = ParseSlotRecord(node->data)->nonce;
  const auto last = shared_.last_writes.find(path);
  if (last == shared_.last_writes.end()) return shared_.first_reader != address_;
  if (record.nonce == before) return last->second.nonce != before;
  return shared_.first_reader != address_ || last->second.server != address_ || !HasPromised(path);
}

bool LeaseWitness::HasPromised(const std::string& path) const {
  const Result<KeptBounds> kept = ParseKeptBounds(promised_);
  return kept.ok() && std::ranges::any_of(kept->bounds, [&](const KeptBound& bound) {
           return SlotPath(bound.slot) == path;
         });
}

}  // namespace firn
