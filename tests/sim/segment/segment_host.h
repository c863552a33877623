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
#include "tests/sim/sim_clock.h"
#include "tests/support/registry/faulty_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// A database that all hosts share, durable until somebody puts an old state of it back.
struct SimDatabase {
  std::map<std::string, int64_t> next;
  bool away = false;
};

// What all hosts of a simulation share. Owned by the world.
struct SegmentShared {
  VirtualClock& clock;
  HostClock& registry_clock;
  MemoryTree& tree;
  SimDatabase& database;
  NumberOracle& oracle;
  PeriodOracle& periods;
  SeededEntropy& dice;
  SegmentMutant mutant = SegmentMutant::kNone;
  bool gap = false;    // the registry lost data, and nobody has frozen or restored it yet
  int64_t losses = 0;  // times that the registry lost data
  int64_t deletions = 0;
  int64_t wasted = 0;
  // A clock's ids, as the plain tags of a whole cluster would give them.
  int64_t snowflakes = NumberOracle::kClockIds;
  // The first id that may be out under any name, in a cluster that serves undefined tags.
  std::optional<int64_t> undefined_from{};
  std::vector<std::string> names{};  // that callers ask for
  Milliseconds slept{0};             // by all machines, until a midnight comes
  std::function<void(const std::string& what)> trace{};
};

// A machine on which a process may run that serves tags: the product's follower, issuer, ledger,
// sources and strategies on one thread, and the calls that wait. Its disk keeps what the follower
// keeps.
class SegmentHost {
 public:
  explicit SegmentHost(SegmentShared& shared);
  ~SegmentHost();

  bool up() const { return process_ != nullptr; }
  void Start(const FaultPlan& plan);

  // One round of the control loop, and some of what the store's thread and the disk have to do.
  void Round();

  // Callers come, or come again.
  void Serve();

  // kill -9: what is on its way to the registry may still arrive.
  void Kill();
  // SIGTERM: true once it is over.
  bool Stop();

  void Disconnect();
  void Reconnect();
  void EndFaults();

  // What its process tells an operator; nothing when there is none.
  std::optional<ProviderReport> Report();

  // How many tags have served a call since this was last asked.
  size_t TagsServed();

  // What it has refused since it served it last, and why: "; tag: why" of each.
  std::string Refusals() const;

 private:
  struct Call {
    std::string tag;
    int64_t beyond = 0;
    // When it came: whether there was the tag, and the losses and deletions so far.
    bool defined = false;
    int64_t losses = 0;
    int64_t deletions = 0;
    bool waited = false;  // with a part of what it wants
    IssueCall issue{};
  };
  struct Process;
  class Disk;

  std::unique_ptr<Call> NewCall();
  void Answer(const Call& call, Verdict verdict);
  void Record(const std::string& tag, int64_t id, int64_t beyond);
  bool IsThere(const std::string& tag) const;
  bool rises(const std::string& tag) const { return tag == "raw"; }

  static constexpr size_t kCallsMax = 20;

  SegmentShared& shared_;
  const std::unique_ptr<Disk> disk_;
  std::unique_ptr<Process> process_;
  std::vector<std::unique_ptr<FaultyCoordinator>> dead_;  // with late writes, perhaps
  std::deque<std::unique_ptr<Call>> calls_;
  std::map<std::string, int64_t> served_;
  std::map<std::string, std::string> refused_;  // by tag, since it was served last: why
};

}  // namespace firn
