#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/time/entropy.h"
#include "registry/servers/provider.h"
#include "server/issue/issuer.h"
#include "tests/sim/segment/period_oracle.h"
#include "tests/sim/segment/segment_mutants.h"
#include "tests/sim/segment/segment_oracle.h"
#include "tests/sim/segment/sim_peers.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// A database that all hosts share. It is durable, except when an old state is restored.
struct SimDatabase {
  std::map<std::string, int64_t> next;
  std::map<std::string, int64_t> late{};  // numbers that queued commands will take
  bool away = false;
};

// State that all hosts of a simulation share. Owned by the world.
struct SegmentShared {
  VirtualClock& clock;
  HostClock& registry_clock;
  MemoryTree& tree;
  SimDatabase& database;
  NumberOracle& oracle;
  PeriodOracle& periods;
  SeededEntropy& dice;
  SimPeers& peers;
  SegmentMutant mutant = SegmentMutant::kNone;
  bool gap = false;    // the registry lost data, and was neither frozen nor restored yet
  int64_t losses = 0;  // number of times that the registry lost data
  int64_t deletions = 0;
  int64_t wasted = 0;
  int64_t takeovers = 0;  // partitions that ended processes have taken
  // Restores that continued an unfinished one, that lacked its documents, and that another crossed.
  int64_t continued = 0, forgetful = 0, crossed = 0;
  // The last id that plain tags have issued, over the whole cluster.
  int64_t snowflakes = NumberOracle::kClockIds;
  // The first id that may be issued under any name, in a cluster that serves undefined tags.
  std::optional<int64_t> undefined_from{};
  std::vector<std::string> names{};  // tags that callers request
  Milliseconds slept{0};             // time for which all machines slept to reach a midnight
  std::function<void(const std::string& what)> trace{};
  // Lets the servers run for that long, without new faults.
  std::function<void(Milliseconds time)> pass{};
  // Returns the reports of running processes, by address.
  std::function<std::map<std::string, ProviderReport>()> reports{};
};

// Returns whether the tag's numbers rise over the whole cluster. Its buffer and store never change.
inline bool IsRisingTag(const std::string& name) { return name == "raw" || name == "order"; }

// A machine on which a process may run that serves tags: the product's follower, issuer, ledger,
// sources, owners and strategies on one thread, and waiting calls. Its disk stores the follower's
// cached tags.
class SegmentHost {
 public:
  // `address`: for other servers.
  SegmentHost(SegmentShared& shared, std::string address);
  ~SegmentHost();

  const std::string& address() const { return address_; }
  bool up() const { return process_ != nullptr; }
  void Start(const FaultPlan& plan);

  // Runs one round of the control loop, and some pending work of the store's thread and the disk.
  void Round();

  // Callers arrive or retry.
  void Serve();

  // Pauses the process, like SIGSTOP. When it continues, its callers may come before its control
  // loop.
  void Pause(Milliseconds time);
  bool paused() const { return shared_.clock.Boot() < paused_until_; }
  // Returns true once after a pause has ended.
  bool Continues();

  // Kills the process, like kill -9. Requests that are in flight to the registry may still arrive.
  void Kill();
  // Begins to hand the tags over to other owners, like the beginning of a drain. The process serves
  // until it is stopped or killed.
  void HandOver();
  // Continues a clean stop, like SIGTERM. Returns true once the process has ended.
  bool Stop();

  void Disconnect();
  void Reconnect();
  // Starts the process if it is down or drains.
  void EndFaults();

  // Returns its process's report for an operator; nothing if there is no process.
  std::optional<ProviderReport> Report();

  // Returns how many tags have served a call since the last request.
  size_t TagsServed();

  // Returns each tag that was refused since it was last served, and why: "; tag: why".
  std::string Refusals() const;

 private:
  struct Call {
    std::string tag;
    int64_t beyond = 0;
    // State at the call's arrival: whether the tag was defined, and the losses and deletions so
    // far.
    bool defined = false;
    int64_t losses = 0;
    int64_t deletions = 0;
    int64_t edits = 0;    // edits so far that could not be served
    bool waited = false;  // after it had got a part of its numbers
    IssueCall issue{};
  };
  struct Process;
  class Disk;

  std::unique_ptr<Call> NewCall();
  void Answer(const Call& call, Verdict verdict);
  void Record(const std::string& tag, int64_t id, int64_t beyond);
  bool IsThere(const std::string& tag) const;
  // Returns the number above which the numbers of a call that begins now must be.
  int64_t BeyondWhat(const std::string& tag) const {
    return IsRisingTag(tag) ? shared_.oracle.Highest(tag) : 0;
  }

  static constexpr size_t kCallsMax = 20;

  SegmentShared& shared_;
  const std::string address_;
  BootMs paused_until_{};
  bool was_paused_ = false;
  const std::unique_ptr<Disk> disk_;
  std::unique_ptr<Process> process_;
  std::vector<std::unique_ptr<FaultyCoordinator>> dead_;  // may still have late writes
  std::deque<std::unique_ptr<Call>> calls_;
  std::map<std::string, int64_t> served_;
  std::map<std::string, std::string> refused_;  // by tag, since it was last served: why
};

}  // namespace firn
