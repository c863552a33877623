#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/time/entropy.h"
#include "server/node/issuing_node.h"
#include "server/node/open_node.h"
#include "tests/sim/node/node_disk.h"
#include "tests/sim/node/node_link.h"
#include "tests/sim/node/node_mutants.h"
#include "tests/sim/node/node_oracle.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// What all hosts of a simulation share. Owned by the world.
struct NodeShared {
  VirtualClock& clock;  // the truth
  MemoryTree& tree;
  NodeOracle& oracle;
  SeededEntropy& dice;
  NodeMutant mutant = NodeMutant::kNone;
  bool trace = false;
  bool is_static = false;        // machine ids are given by hand
  bool is_directory = false;     // the registry is one, so whoever comes first makes the cluster
  bool strict = false;           // clock policy of all
  uint64_t machine_ids_max = 1;  // that a host has at once
  Milliseconds window{};
  std::string given_layout{};  // as servers are told; empty: the cluster's
  FaultRates rates{};
  // While a process joins its cluster time passes, and others go on.
  std::function<void(Milliseconds)> pass{};
  uint64_t cuts_one_in = 0;         // of the answers that a joining process gets; 0: none
  std::string probe{};              // a snowflake tag that everybody serves who can
  std::vector<std::string> tags{};  // that are called
  std::vector<std::pair<int64_t, BootMs>> expiring{};  // sessions, and when they end

  void Trace(const std::string& what) const;
  void ExpireLater(int64_t session);
  bool OneIn(uint64_t n) const { return dice.Below(n) == 0; }
};

// A machine on which whole nodes run, one after the other, each opened as a server opens it:
// JoinCluster or a machine id given by hand, keeper, tag follower, segments, issuer, readiness.
class NodeHost {
 public:
  // `machine` counts where ids are given by hand.
  NodeHost(NodeShared& shared, int index, uint32_t machine);
  ~NodeHost();

  // --- its life ---------------------------------------------------------------------------------
  void Start(bool connected);
  // kill -9: its session stays, and what it sent may yet arrive.
  void Kill();
  void Reboot();
  // SIGTERM. Rounds follow until it is over.
  void Stop();
  void Round();
  // Callers come, or come again (node_callers.cc).
  void Serve();
  void DieSoon();
  void RunGhost();

  bool up() const { return process_ != nullptr; }
  void Disconnect();
  void Reconnect();
  // Whatever its clock, disk or connection has suffered.
  void EndFaults();
  int64_t session() const;

  // --- where machine ids are given by hand (node_static.cc)
  // ------------------------------------------------------- This machine gets what the other one's
  // disk holds, in other files; or it is another folder of that very machine.
  void CopyFrom(const NodeHost& other, bool same_inode, bool same_machine);
  // The grant is put back in another file as it was so many writes ago.
  void PutBackup(size_t writes_ago, bool same_inode);
  // The disk was lost for a moment, and is as it was so many writes ago.
  void BringBack(size_t writes_ago);
  // The operator's word that this copy is the only one.
  void Adopt();
  // Nobody runs it any more.
  void Retire();
  bool retired() const { return retired_; }
  // Its grant is a copy and nobody has said that it may be used.
  bool is_copy() const { return is_copy_; }
  // In this boot somebody has set its clock, or it runs at a pace of its own.
  void NoteUnevenClock() { uneven_ = true; }
  bool uneven() const { return uneven_; }
  // Its disk is as it was, and nothing has been issued since.
  bool went_back() const { return went_back_; }
  uint32_t machine() const { return machine_; }

  // Tags that have served a call since this was last asked.
  size_t TagsServed() { return std::exchange(served_, {}).size(); }
  std::string Status() const;

  // Of its first machine id, and of any of them.
  NodeDisk& disk() { return disks_.front(); }
  NodeDisk& AnyDisk() { return disks_[shared_.dice.Below(disks_.size())]; }
  // Every machine id that it should have now.
  bool HoldsAll() const;
  HostClock& clock() { return clock_; }
  BootMs paused_until{};

 private:
  struct Call {
    std::string_view tag;
    IssueCall issue{};
    bool waited = false;
  };
  struct Process {
    explicit Process(uint64_t seed) : entropy(seed) {}

    bool dead = false;
    SeededEntropy entropy;
    std::shared_ptr<NodeWire> wire{};  // null where there is no registry
    std::unique_ptr<IssuingNode> node{};
    std::deque<std::unique_ptr<Call>> calls{};
    std::optional<BootMs> refused_since{};
    std::optional<BootMs> first_round{};
    Tick highest{};                  // of any whole call
    std::optional<Grant> goes_on{};  // inside this one, as it has not reached its registry yet
    bool stopping = false;
  };

  Result<std::unique_ptr<IssuingNode>> Open(Process& process, bool connected);
  Result<std::unique_ptr<Coordinator>> Connect(Process& process, bool connected);
  IssuingNodeOptions Options();
  NodePlace Place() const;
  bool reached() const { return process_->wire != nullptr && process_->wire->faulty().connected(); }
  void Judge();
  void JudgeOfflineStart(const IssuingNodeStatus& status);
  void JudgeReadiness(const IssuingNodeStatus& status);
  bool SaysReady(const IssuingNodeStatus& status) const;
  std::unique_ptr<Call> NewCall(std::string_view tag, int64_t count);
  Verdict Try(Call& call);
  void Record(const Call& call);
  void JudgeOrder(const Call& call);
  void Trace(const std::string& what) const;

  NodeShared& shared_;
  const int index_;
  const uint32_t machine_;
  const std::string name_;
  std::deque<NodeDisk> disks_;  // one for each machine id that it ever had at once
  HostClock clock_;
  std::unique_ptr<Process> process_;
  std::shared_ptr<NodeWire> ghost_;  // of the last process
  std::set<std::string, std::less<>> served_;
  bool starting_ = false;
  bool has_issued_ = false;
  bool is_copy_ = false;
  bool adopts_ = false;
  bool retired_ = false;
  bool clock_ok_ = false;
  bool went_back_ = false;
  bool uneven_ = false;
};

}  // namespace firn
