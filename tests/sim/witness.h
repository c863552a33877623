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

// How far the registry's clock may be off and still be accepted, beyond its drift.
inline constexpr Milliseconds kBelievedOff{20'000};

// Knows every claim that the registry ever accepted, by nonce, and checks every write to a slot
// that is really applied: invariants 3 to 7.
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
    int64_t meta_version = 0;  // under which it was made
    WallMs bound;              // the highest that was ever applied
    WallMs base_min;           // no tick may lie below it
    WallMs base_reason;        // it may begin up to here, whatever its maker's clocks show
  };

  bool judging() const { return judging_; }
  // Whether the registry has lost data, so that holders may freeze the cluster.
  void NoteLoss() { lost_ = true; }
  bool lost() const { return lost_; }
  MachineId MachineAt(const std::string& slot_path) const;

  // Null if no claim with this nonce was ever applied.
  const Entry* Find(const Nonce& nonce) const {
    const auto entry = entries_.find(nonce);
    return entry == entries_.end() ? nullptr : &entry->second;
  }

  // Whether the machine id was last claimed with this record's nonce, whatever the registry says
  // now, and the registry has not forgotten the last write of a copy of this host.
  bool IsLast(MachineId machine, const SlotRecord& record, int host) const {
    const auto last = last_.find(machine.value());
    return last != last_.end() && last->second.nonce == record.nonce &&
           (last->second.host == host || last->second.word == record.word);
  }

  // The last write to a slot that was applied.
  struct Last {
    Nonce nonce;  // of the last claim, even if it has ended
    Nonce word;
    int64_t version = 0;
    int host = 0;
  };

  // A claim that was made after the registry had lost data, before it was frozen: its ids below
  // this time may be of another claim, which the registry has lost. 0: there are none.
  WallMs Excused(const Nonce& nonce) const {
    const auto excused = excused_.find(nonce);
    return excused == excused_.end() ? WallMs() : excused->second;
  }

  HolderBook& holders() { return holders_; }

  // Null if there was none.
  const Last* LastOf(MachineId machine) const {
    const auto last = last_.find(machine.value());
    return last == last_.end() ? nullptr : &last->second;
  }

  // A process on that host has changed a slot's record from `before` to `after`, at this version.
  // `gap`: the registry has lost data and is not frozen.
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
  std::unordered_map<uint32_t, WallMs> highest_;  // bound ever, by machine id
  std::unordered_map<uint32_t, Last> last_;       // by machine id
  HolderBook holders_;
};

// Whether a server's multi sets a slot's record, the second of its writes.
bool SetsASlot(const std::vector<Write>& writes);

// Sees what one process sends to the registry, and reports it to the book. While `gap` is set it
// refuses, until the cluster is frozen, what nothing is promised about: renewals by a holder whose
// successor the registry has forgotten.
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
  const WallMs& highest_bound_;  // of any process on this host
  const bool& gap_;
  Nonce last_claim_;  // that this process holds, has held, or could have resumed
};

}  // namespace firn
