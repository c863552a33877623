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
  if (freezes) shared_.Count("freezes");
  if (freezes && shared_.mutant == LeaseMutant::kNone && !shared_.has_lost) {
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
  const SlotRecord replaced = *ParseSlotRecord(before->data);
  const bool claims = !record->nonce.zero() && record->nonce != replaced.nonce;
  if (claims && IsInGap()) NoteGapClaim(path, *record);
  shared_.last_writes[path] = {record->nonce, address_};
  NoteApplied(path, *record);
  Require(!claims || !replaced.retired, 2, "a retired or reserved machine id is claimed");
}

void LeaseWitness::NoteGapClaim(const std::string& path, const SlotRecord& record) {
  const auto last = shared_.last_writes.find(path);
  const bool is_own = last != shared_.last_writes.end() && last->second.server == address_;
  if (shared_.first_reader == address_ && is_own && HasPromised(path)) return;
  shared_.Count("claims after losses");
  shared_.gap_claims[path] = {record.nonce, record.since, shared_.clock.Boot()};
  const Layout& layout = shared_.layout;
  shared_.oracle.Excuse(record.nonce.text(), layout.FirstTickFrom(record.since),
                        layout.TickAt(shared_.highest[path]));
}

void LeaseWitness::NoteApplied(const std::string& path, const SlotRecord& record) {
  if (record.nonce.zero()) return;
  shared_.highest[path] = std::max(shared_.highest[path], record.bound);
  const auto worker = static_cast<uint32_t>(std::stoul(path.substr(path.rfind('/') + 1)));
  const Layout& layout = shared_.layout;
  shared_.twins.NoteClaim(*RackSplit::Make(layout, 0)->Join(worker, 0),
                          layout.FirstTickFrom(record.since), record.nonce);
  shared_.twins.NoteApplied(path, record, layout.TickAt(record.bound));
}

bool LeaseWitness::IsInGap() const {
  const auto meta = shared_.tree.Peek(kMetaPath);
  return shared_.gap && meta.has_value() && !ParseMeta(meta->data)->frozen;
}

bool LeaseWitness::IsUnpromised(const std::string& path, const SlotRecord& record) const {
  const auto node = shared_.tree.Peek(path);
  if (!IsInGap() || !node.has_value() || record.nonce.zero()) return false;
  const Nonce before = ParseSlotRecord(node->data)->nonce;
  const auto last = shared_.last_writes.find(path);
  const bool forgotten = last != shared_.last_writes.end() && last->second.nonce != before;
  return record.nonce == before && forgotten;
}

bool LeaseWitness::HasPromised(const std::string& path) const {
  const Result<KeptBounds> kept = ParseKeptBounds(promised_);
  return kept.ok() && std::ranges::any_of(kept->bounds, [&](const KeptBound& bound) {
           return SlotPath(bound.slot) == path;
         });
}

}  // namespace firn
