#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/records.h"
#include "tests/sim/leases/lease_mutants.h"
#include "tests/sim/leases/lease_oracle.h"
#include "tests/support/registry/forwarding_coordinator.h"

namespace firn {

// Records which ticks two copies of a server may both use.
//
// Each write to a slot has a word, which its server remembers. Two copies both know the words that
// were sent before the copy was made, and accept a record with such a word as their own. Later
// words belong to one of them. So both copies may use the ticks of a claim below the highest bound
// that was set with a common word. Since either copy may release the slot, a successor may use
// them, too.
class LeaseTwins {
 public:
  // `oracle` must outlive it.
  explicit LeaseTwins(LeaseOracle& oracle) : oracle_(oracle) {}

  // Records a claim by its first tick; ClaimFrom finds it. The oracle's groups have the names of
  // claims.
  void NoteClaim(MachineId machine, Tick first, const Nonce& claim);
  std::optional<Nonce> ClaimFrom(MachineId machine, Tick first) const;

  // Records that two copies know this word.
  void Share(const Nonce& word);
  // Records that a write of a claim was applied. Ticks below `until` are below its bound.
  void NoteApplied(const std::string& path, const SlotRecord& record, Tick until);
  // Returns the claim that a write with this word has raised, and its slot, or nullopt if no such
  // write was applied.
  std::optional<std::pair<Nonce, std::string>> RaisedBy(const Nonce& word) const;

  // Records that a server that holds the claim is copied. Ticks below `from` were used or leased
  // before, so no successor may use them. A claim in progress has no such ticks.
  void NoteCopied(const Nonce& claim, Tick from) { from_.emplace(claim, from); }

 private:
  struct Applied {
    Nonce claim;
    std::string path;
    Tick until;
  };

  void Excuse(const Applied& applied);

  LeaseOracle& oracle_;
  std::map<std::pair<uint32_t, Tick>, Nonce> claims_;  // by machine id and first tick
  std::set<Nonce> shared_;                             // words
  std::map<Nonce, Applied> applied_;                   // by word
  std::map<Nonce, Tick> from_;                         // by claim
};

// Placed between a server and its connection: records the words that the server has sent. Injects
// the errors of mutants about them.
class LeaseWords final : public ForwardingCoordinator {
 public:
  // `inner` must outlive it.
  LeaseWords(Coordinator& inner, LeaseMutant mutant)
      : ForwardingCoordinator(inner), mutant_(mutant) {}

  const std::set<Nonce>& sent() const { return sent_; }

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;

 private:
  void WithOwnWord(Node& node) const;

  const LeaseMutant mutant_;
  std::set<Nonce> sent_;
  std::map<Nonce, Nonce> last_;  // last word, by claim
};

}  // namespace firn
