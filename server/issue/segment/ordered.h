#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "server/issue/segment/owner_source.h"
#include "server/issue/segment/unbuffered.h"

namespace firn {

// Issues numbers of one tag that rise across the whole cluster in real time, from the memory of the
// tag's owner (buffer = owner). Calls at the owner take numbers from its memory (OwnedNumbers).
// Calls at other servers wait as in Unbuffered, and one request to the owner serves all calls that
// have arrived meanwhile.
//
// So the owner takes a call's number after the call began. Two owners never take numbers at the
// same time. Each owner takes numbers above all earlier ones, because the ledger's ranges rise.
// Hence a call that begins after another was answered gets a larger number.
class Ordered final : public Unbuffered {
 public:
  // The owner gets its ranges from the source of `parts`. `owned` is the term of the tag's
  // partition. References must outlive the object.
  static Result<std::shared_ptr<Ordered>> Make(const TagDefinition& tag, const RangedParts& parts,
                                               const OwnedTerm& owned, OwnerLink& owner);

  const std::shared_ptr<OwnedNumbers>& own() const { return own_; }

  bool TryOne(Method method, int64_t* id) override { return own_->TryOne(method, id); }
  bool TryRun(Method method, int64_t want, IdRun* run) override {
    return own_->TryRun(method, want, run);
  }
  Verdict Issue(IssueCall& call) override;
  // Every range of the owner has at least this many numbers, except near the tag's last number.
  int64_t one_run_max() const override { return own_->one_run_max(); }
  // False, because the caller could use the numbers of a run after larger ones have been issued.
  bool gives_runs() const override { return false; }
  int64_t NextAtLeast() const override {
    return std::max(own_->NextAtLeast(), Unbuffered::NextAtLeast());
  }
  // At a server that does not own the tag's numbers, the answer to the last request counts, if it
  // was an error. Otherwise there is no refusal while this server knows an owner.
  std::optional<Refusal> WhyNot() const override;

  void Close() override;
  void Stop() override;
  void Adjust(const TagDefinition& tag) override;
  bool Tick(BootMs now) override;
  void Abandon() override;
  void Drop(const std::string& why) override;
  bool settled() const override { return own_->settled() && Unbuffered::settled(); }
  SegmentStatus status() const override;

 private:
  Ordered(const TagDefinition& tag, RangedParts parts, std::shared_ptr<OwnedNumbers> own,
          std::shared_ptr<OwnerSource> source);

  // If this server owns the tag's numbers, adds numbers from its memory to the call.
  void TakeOwn(IssueCall& call);

  bool has_owner() const { return own_->owns() || source_->knows_owner(tag()); }
  // Returns whether a call would be refused because this server has known no owner for kHold.
  bool lacks_owner() const { return unowned_ && !has_owner(); }

  const std::shared_ptr<OwnedNumbers> own_;
  const std::shared_ptr<OwnerSource> source_;
  // First Tick without an owner; Tick only. Before an owner is known, calls would be refused.
  std::optional<BootMs> unowned_since_{BootMs() - OwnerSource::kHold};
  std::atomic<bool> unowned_ = true;  // that is at least kHold ago
  int64_t change_ = 0;                // OwnerLink::ChangeOf at the last Tick; Tick only
};

}  // namespace firn
