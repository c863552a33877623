#include "tests/sim/leases/lease_twins.h"

#include <utility>

#include "tests/sim/witness.h"

namespace firn {

void LeaseTwins::NoteClaim(MachineId machine, Tick first, const Nonce& claim) {
  claims_[{machine.value(), first}] = claim;
}

std::optional<Nonce> LeaseTwins::ClaimFrom(MachineId machine, Tick first) const {
  const auto claim = claims_.find({machine.value(), first});
  return claim == claims_.end() ? std::nullopt : std::optional(claim->second);
}

void LeaseTwins::Share(const Nonce& word) {
  shared_.insert(word);
  const auto applied = applied_.find(word);
  if (applied != applied_.end()) Excuse(applied->second);
}

void LeaseTwins::NoteApplied(const std::string& path, const SlotRecord& record, Tick until) {
  const Applied applied{record.nonce, path, until};
  applied_.insert_or_assign(record.word, applied);
  if (shared_.contains(record.word)) Excuse(applied);
}

std::optional<std::pair<Nonce, std::string>> LeaseTwins::RaisedBy(const Nonce& word) const {
  const auto applied = applied_.find(word);
  if (applied == applied_.end()) return std::nullopt;
  return std::pair(applied->second.claim, applied->second.path);
}

void LeaseTwins::Excuse(const Applied& applied) {
  const std::string group = applied.claim.text();
  const auto from = from_.find(applied.claim);
  oracle_.Share(group, applied.until);
  oracle_.Excuse(group, from == from_.end() ? Tick(INT64_MIN) : from->second, applied.until);
}

// --- words ---------------------------------------------------------------------------------------

void LeaseWords::Read(const std::string& path, ReadDone done, Changed changed) {
  if (mutant_ == LeaseMutant::kTwinsUnnoticed && path.starts_with(kMachinesPath)) {
    done = [this, done = std::move(done)](Result<Node> node) {
      if (node.ok()) WithOwnWord(*node);
      done(std::move(node));
    };
  }
  inner().Read(path, std::move(done), std::move(changed));
}

void LeaseWords::WithOwnWord(Node& node) const {
  Result<SlotRecord> record = ParseSlotRecord(node.data);
  if (!record.ok() || !record->lease.has_value()) return;
  const auto own = last_.find(record->nonce);
  if (own == last_.end()) return;
  record->word = own->second;
  node.data = FormatSlotRecord(*record);
}

void LeaseWords::Multi(std::vector<Write> writes, WriteDone done) {
  if (SetsASlot(writes)) {
    const Result<SlotRecord> record = ParseSlotRecord(writes[1].data);
    if (record.ok() && !record->nonce.zero()) {
      sent_.insert(record->word);
      last_[record->nonce] = record->word;
    }
  }
  inner().Multi(std::move(writes), std::move(done));
}

}  // namespace firn
