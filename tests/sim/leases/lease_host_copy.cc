// Copies of a server: of the running machine, which a second process mirrors, and of the state
// folder only.

#include "tests/sim/leases/lease_host.h"
#include "tests/sim/violation.h"

namespace firn {

// Returns a machine with this one's disk and clocks.
std::unique_ptr<LeaseHost> LeaseHost::Another() const {
  auto another = std::make_unique<LeaseHost>(shared_, index_, claim_, leases_max_);
  another->disk_ = disk_;
  another->clock_ = clock_;
  return another;
}

// Starts the second process, in the same state as the first one.
void LeaseHost::KeepCopy(uint64_t seed) {
  second_ = Another();
  second_->process_ = std::make_unique<Process>(*second_, seed, nullptr);
  process_->mirror.Lead(second_->process_->mirror);
}

// Returns the second process's host, to repeat what this one does; null: there is none.
LeaseHost* LeaseHost::InStep() {
  if (second_ == nullptr) return nullptr;
  second_->clock_ = clock_;
  second_->disk_.stalled = disk_.stalled;
  second_->disk_.fails = disk_.fails;
  return second_.get();
}

std::unique_ptr<LeaseHost> LeaseHost::Copy() {
  if (!running() || second_ == nullptr || process_->stale_time.has_value()) return nullptr;
  const Tenure* const tenure = process_->keeper.tenure();
  const Tenure* const its_tenure = second_->process_->keeper.tenure();
  const bool same = (tenure == nullptr) == (its_tenure == nullptr) &&
                    (tenure == nullptr || (tenure->terms().word == its_tenure->terms().word &&
                                           tenure->limit() == its_tenure->limit())) &&
                    process_->table.highest_bound() == second_->process_->table.highest_bound() &&
                    process_->words.sent() == second_->process_->words.sent();
  if (!same) Die("a copy that differs");
  Trace("is copied");
  process_->mirror.Part();
  std::unique_ptr<LeaseHost> copy = std::move(second_);
  copy->name_ += "-copy" + std::to_string(copy->number_);
  copy->process_->user.numbers = true;
  if (copy->process_->user.has_claim()) copy->process_->user.CountAs(++shared_.named);
  shared_.copied.insert(address_);
  if (!shared_.generations) ShareClaims();
  return copy;
}

// Returns the grant that a start on this machine may resume.
std::optional<Grant> LeaseHost::GrantOnDisk() const {
  MemoryDisk disk = disk_.claims;
  MemoryStateFolder folder(disk);
  const Result<GrantFile::Found> found = GrantFile(folder).Read();
  return found.ok() && found->identity == disk.identity ? std::optional(found->grant)
                                                        : std::nullopt;
}

// Reports to the oracle the claims and words that both copies know.
void LeaseHost::ShareClaims() const {
  LeaseTwins& twins = shared_.twins;
  std::set<Nonce> words = process_->words.sent();
  std::set<Nonce> held;
  if (const Tenure* const tenure = process_->keeper.tenure()) {
    const Tenure::Terms& terms = tenure->terms();
    words.insert({terms.word, terms.pending_word});  // includes the words of an earlier process
    held.insert(terms.nonce);
    const bool issued = process_->own_number == process_->user.number();
    if (issued) twins.NoteCopied(terms.nonce, shared_.oracle.EndOf(process_->own));
  } else if (const auto grant = GrantOnDisk()) {  // both may resume it
    words.insert({grant->word, grant->pending_word});
    held.insert(grant->nonce);
    twins.NoteCopied(grant->nonce, shared_.layout.FirstTickFrom(grant->limit));
  }
  for (const LeaseShown& lease : process_->table.List()) {
    const auto claim = twins.ClaimFrom(lease.machine, shared_.layout.TickAt(lease.from));
    if (!claim.has_value()) continue;
    held.insert(*claim);
    twins.NoteCopied(*claim, shared_.layout.TickAt(lease.until));
  }
  for (const Nonce& word : words) {
    const auto raised = twins.RaisedBy(word);
    // After a restore, the record of a held claim has another nonce.
    const bool asks = raised && !held.contains(raised->first);
    const auto node = asks ? shared_.tree.Peek(raised->second) : std::nullopt;
    const bool over = node && ParseSlotRecord(node->data)->nonce != raised->first;
    if (!over && !word.zero()) twins.Share(word);
  }
}

void LeaseHost::Resume(Milliseconds slept, BootMs clock_right_at) {
  clock_.Sleep(slept);
  clock_.SetRightAt(clock_right_at);
  process_->entropy = SeededEntropy(shared_.dice.Next());
  process_->link = NewLink(*this);
  if (shared_.generations) disk_.claims.identity.boot_id += ".copy";
  process_->mirror.GoOn(*process_->link);
  Trace("is resumed as a copy");
  if (shared_.generations) TickAll(Read());
}

// Returns another machine with these files, in another boot: no grant is valid there.
std::unique_ptr<LeaseHost> LeaseHost::CopyFolder() {
  auto copy = Another();
  copy->name_ += "-folder" + std::to_string(copy->number_);
  copy->disk_.stalled = copy->disk_.fails = false;
  const auto inode = 1'000'000 + static_cast<uint64_t>(copy->number_);
  copy->disk_.claims.identity = {"boot-" + copy->name_, {1, inode, 1}, {2, inode, 1}};
  shared_.copied.insert(address_);
  copy->Start(true);
  return copy;
}

std::set<std::string> LeaseHost::Claims() const {
  std::set<std::string> claims;
  if (!running()) return claims;
  if (const Tenure* const tenure = process_->keeper.tenure()) {
    claims.insert("claim " + tenure->terms().nonce.text());
  }
  for (const LeaseShown& lease : process_->table.List()) {
    if (!lease.trouble.empty()) continue;
    claims.insert("lease of machine id " + std::to_string(lease.machine.value()) + " from " +
                  std::to_string(lease.from.ms()));
  }
  return claims;
}

}  // namespace firn
