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
#include "registry/servers/provider.h"
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

// State that all hosts of a simulation share. Owned by the world.
struct NodeShared {
  VirtualClock& clock;  // the true time
  MemoryTree& tree;
  NodeOracle& oracle;
  SeededEntropy& dice;
  NodeMutant mutant = NodeMutant::kNone;
  bool trace = false;
  bool is_static = false;        // machine ids are assigned by hand
  bool is_directory = false;     // the registry is a directory: the first host creates the cluster
  bool strict = false;           // the clock policy of all hosts
  uint64_t machine_ids_max = 1;  // maximum for each host at the same time
  Milliseconds window{};
  std::string given_layout{};  // as configured; empty: the cluster's
  FaultRates rates{};
  // Lets time pass while a process joins its cluster. Other hosts continue.
  std::function<void(Milliseconds)> pass{};
  uint64_t cuts_one_in = 0;         // one in this number of answers to a joining process cuts the
                                    // connection; 0: none
  std::string probe{};              // a snowflake tag that every able host serves
  std::vector<std::string> tags{};  // the tags that are called
  std::vector<std::pair<int64_t, BootMs>> expiring{};  // sessions, and when they end

  void Trace(const std::string& what) const;
  void ExpireLater(int64_t session);
  bool OneIn(uint64_t n) const { return dice.Below(n) == 0; }
};

// A machine on which whole nodes run, one after the other, each opened as a server opens it:
// JoinCluster or a static machine id, keeper, tag follower, segments, issuer, readiness.
class NodeHost {
 public:
  // `machine` applies if machine ids are assigned by hand.
  NodeHost(NodeShared& shared, int index, uint32_t machine);
  ~NodeHost();

  // --- its life ---------------------------------------------------------------------------------
  void Start(bool connected);
  // Kills the process, like kill -9. Its session remains, and its requests may still arrive.
  void Kill();
  void Reboot();
  // Begins a clean stop, like SIGTERM. It needs further rounds.
  void Stop();
  void Round();
  // Callers arrive or retry (node_callers.cc).
  void Serve();
  void DieSoon();
  void RunGhost();

  bool up() const { return process_ != nullptr; }
  void Disconnect();
  void Reconnect();
  // Repairs its clock, disk and connection.
  void EndFaults();
  int64_t session() const;

  // --- static machine ids (node_static.cc) ------------------------------------------------------
  // Copies the contents of the other machine's disk to new files. `same_machine`: into another
  // folder on the same machine.
  void CopyFrom(const NodeHost& other, bool same_inode, bool same_machine);
  // Restores the grant's state before the last `writes_ago` writes in another file.
  void PutBackup(size_t writes_ago, bool same_inode);
  // Makes the disk unavailable for a moment. It returns in its state before the last `writes_ago`
  // writes.
  void BringBack(size_t writes_ago);
  // Confirms, as the operator, that this copy is the only one.
  void Adopt();
  // Ends the use of the machine: no process runs on it again.
  void Retire();
  bool retired() const { return retired_; }
  // Returns whether its grant is a copy that the operator has not confirmed.
  bool is_copy() const { return is_copy_; }
  // Records that its clock was set in this boot, or runs at another rate.
  void NoteUnevenClock() { uneven_ = true; }
  bool uneven() const { return uneven_; }
  // Returns whether its disk is in an earlier state and no id has been issued since.
  bool went_back() const { return went_back_; }
  uint32_t machine() const { return machine_; }

  // Returns the number of tags that have served a call since the last TagsServed.
  size_t TagsServed() { return std::exchange(served_, {}).size(); }
  std::string Status() const;
  // The process's report to an operator; nullopt: no process runs.
  std::optional<ProviderReport> Report() const;

  // The disk of its first machine id, and of a random one.
  NodeDisk& disk() { return disks_.front(); }
  NodeDisk& AnyDisk() { return disks_[shared_.dice.Below(disks_.size())]; }
  // Returns whether it holds every machine id that it should hold now.
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
    std::shared_ptr<NodeWire> wire{};  // null without a registry
    std::unique_ptr<IssuingNode> node{};
    std::deque<std::unique_ptr<Call>> calls{};
    std::optional<BootMs> refused_since{};
    std::optional<BootMs> first_round{};
    Tick highest{};                  // highest tick of all completed calls
    std::optional<Grant> goes_on{};  // the grant that it resumed without its registry
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
  std::deque<NodeDisk> disks_;  // one for each machine id that it had at the same time
  HostClock clock_;
  std::unique_ptr<Process> process_;
  std::shared_ptr<NodeWire> ghost_;  // connection of the previous process
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
