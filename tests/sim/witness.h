#pragma once

#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/id/layout.h"
#include "common/id/rack_split.h"
#include "registry/cluster/records.h"
#include "tests/sim/holders/holder_book.h"
#include "tests/sim/oracle.h"
#include "tests/sim/sim_clock.h"
#include "tests/sim/sim_disk.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Maximum error of the registry's clock, besides its drift, at which servers accept it.
inline constexpr Milliseconds kBelievedOff{20'000};

// Records every claim that the registry has accepted, by nonce, and checks invariants 3 to 7 at
// every applied write to a slot.
class ClaimBook {
 public:
  // `judging` false: only records the last claims.
  ClaimBook(const Clock& truth, const HostClock& registry_clock, const MemoryTree& tree,
            const IssueOracle& oracle, const Layout& layout, int rack_bits, bool judging)
      : truth_(truth),
        registry_clock_(registry_clock),
        tree_(tree),
        oracle_(oracle),
        layout_(layout),
        split_(*RackSplit::Make(layout, rack_bits)),
        judging_(judging) {}

  struct Entry {
    int64_t meta_version = 0;  // version of the root node under which the claim was made
    WallMs bound;              // the highest bound that was applied
    WallMs base_min;           // lower limit of the claim's ticks
    WallMs base_reason;  // latest begin of the claim that needs no justification by the claimant's
                         // clocks
  };

  bool judging() const { return judging_; }
  // Records that the registry has lost data, so that holders may freeze the cluster.
  void NoteLoss() {
    lost_ = true;
    holders_.NoteLoss();
  }
  bool lost() const { return lost_; }
  MachineId MachineAt(const std::string& slot_path) const;

  // Returns the claim, or null if no claim with this nonce was ever applied.
  const Entry* Find(const Nonce& nonce) const {
    const auto entry = entries_.find(nonce);
    return entry == entries_.end() ? nullptr : &entry->second;
  }

  // Returns whether the last claim of the machine id has this record's nonce, even if the registry
  // has lost it, and the registry has not lost the last write of a copy of this host.
  bool IsLast(MachineId machine, const SlotRecord& record, int host) const {
    const auto last = last_.find(machine.value());
    return last != last_.end() && last->second.nonce == record.nonce &&
           (last->second.host == host || last->second.word == record.word);
  }

  // The last applied write to a slot.
  struct Last {
    Nonce nonce;  // nonce of the last claim, even if it has ended
    Nonce word;
    int64_t version = 0;
    int host = 0;
  };

  // Returns the time below which the claim's ids may also belong to another claim that the registry
  // has lost. Not 0 only for a claim that was made after the registry had lost data and before the
  // cluster was frozen.
  WallMs Excused(const Nonce& nonce) const {
    const auto excused = excused_.find(nonce);
    return excused == excused_.end() ? WallMs() : excused->second;
  }

  HolderBook& holders() { return holders_; }

  // Returns the last applied write to the machine id's slot, or null if there was none.
  const Last* LastOf(MachineId machine) const {
    const auto last = last_.find(machine.value());
    return last == last_.end() ? nullptr : &last->second;
  }

  // Records and checks a write by a process on `host` that changed a slot's record from `before` to
  // `after`, at this version. `gap`: the registry has lost data and the cluster is not frozen.
  void Applied(MachineId machine, const SlotRecord& before, const SlotRecord& after,
               int64_t version, int host, SimDisk& disk, bool gap);

 private:
  void JudgeBound(const SlotRecord& before, const SlotRecord& after) const;
  void JudgeClaim(const SlotRecord& before, const SlotRecord& after, SimDisk& disk);
  void JudgeRenewal(const SlotRecord& before, const SlotRecord& after);
  void JudgeRelease(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                    SimDisk& disk);

  struct HashNonce {
    size_t operator()(const Nonce& nonce) const { return std::hash<std::string>()(nonce.text()); }
  };

  const Clock& truth_;
  const HostClock& registry_clock_;
  const MemoryTree& tree_;
  const IssueOracle& oracle_;
  const Layout layout_;
  const RackSplit split_;
  const bool judging_;
  bool lost_ = false;
  std::unordered_map<Nonce, Entry, HashNonce> entries_;
  std::unordered_map<Nonce, WallMs, HashNonce> excused_;
  std::unordered_map<uint32_t, WallMs> highest_;  // highest bound ever, by machine id
  std::unordered_map<uint32_t, Last> last_;       // by machine id
  HolderBook holders_;
};

// Returns whether a server's multi sets a slot's record, which is then its second write.
bool SetsASlot(const std::vector<Write>& writes);

// Observes the requests of a process to the registry and reports them to the book. While `gap` is
// set and the cluster is not frozen, it refuses renewals of a holder whose successor the registry
// has lost, because there is no guarantee about them.
class Witness final : public ForwardingCoordinator {
 public:
  Witness(std::unique_ptr<MemoryCoordinator> inner, const MemoryTree& tree, ClaimBook& book,
          SimDisk& disk, int host, const WallMs& highest_bound, const bool& gap)
      : ForwardingCoordinator(*inner),
        inner_(std::move(inner)),
        tree_(tree),
        book_(book),
        disk_(disk),
        host_(host),
        highest_bound_(highest_bound),
        gap_(gap) {}

  MemoryCoordinator& inner() { return *inner_; }

  void Read(const std::string& path, ReadDone done, Changed changed) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  int Dispatch(Milliseconds wait) override {
    if (const Grant* const permit = disk_.PermitsAStart()) last_claim_ = permit->nonce;
    return inner_->Dispatch(wait);
  }

 private:
  bool Unpromised(const Node& before, const Write& set) const;
  void JudgeFreeze(const Write& set) const;
  void JudgeHolders(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                    const std::string& path);

  std::unique_ptr<MemoryCoordinator> inner_;
  const MemoryTree& tree_;
  ClaimBook& book_;
  SimDisk& disk_;
  const int host_;
  const WallMs& highest_bound_;  // highest bound of any process on this host
  const bool& gap_;
  WallMs highest_floor_;  // highest floor that this process has read
  Nonce last_claim_;      // the claim that this process holds, has held, or could have resumed
};

}  // namespace firn
