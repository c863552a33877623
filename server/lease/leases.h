#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/time/entropy.h"
#include "registry/seam/control_loop.h"
#include "server/lease/lease_desk.h"
#include "server/lease/lease_file.h"
#include "server/lease/lease_shares.h"
#include "server/lease/lease_table.h"

namespace firn {

// Passes calls about a server's leases from its front to its control thread.
//
// Call, List and counts: any thread. OnSession and Tick: the control thread. The next Tick handles
// a call, with its own time, because the last Tick's time is outdated after a pause of the process.
class Leases final : public LeaseDesk {
 public:
  // `stem`: see LeaseFile. The references must outlive the object. Destroy it on the control
  // thread, or after that has stopped. Calls that are still queued then get an answer and do not
  // access the object.
  Leases(const LeaseTableOptions& options, ControlLoop& loop, Entropy& entropy,
         const std::string& stem);

  std::shared_ptr<const LeaseAnswer> Call(LeaseCall call) override;
  std::vector<LeaseShown> List() const override;
  LeaseCounts counts() const override;
  WallMs highest_bound() const override;

  void OnSession(const SessionEvent& event) { core_->table.OnSession(event); }
  void Tick(const KeeperTime& now, LeaseTable::Server server);

  // Stops granting and extending leases, and lowers each bound to the promised end. This frees
  // machine ids sooner and lets the next process resume the leases. Blocks for at most `time`. Must
  // not be called on the control thread, which must be running.
  void StopWithin(Milliseconds time);

 private:
  // The state that queued calls use. They hold weak references only, so it is destroyed with the
  // object.
  struct Core {
    Core(const LeaseTableOptions& options, ControlLoop& loop, Entropy& entropy,
         const std::string& stem);
    ~Core();

    std::atomic<int> posted = 0;  // number of calls that the table has not handled yet
    // The calls that have reached the control thread. Only that thread uses this.
    std::vector<std::pair<LeaseCall, std::shared_ptr<LeaseAnswer>>> calls;
    LeaseFile file;
    LeaseTable table;  // used by the control thread only, like `shares`
    LeaseShares shares;
  };

  void HandleCalls();

  ControlLoop& loop_;
  const std::shared_ptr<Core> core_;
  BootMs show_at_;  // used by the control thread only

  mutable std::mutex mutex_;  // guards the members below, which Tick publishes
  std::vector<LeaseShown> shown_;
  LeaseCounts counts_;
  WallMs highest_bound_;
};

// The desk of a server that cannot grant leases. Refuses every call with the reason. Thread-safe.
class NoLeases final : public LeaseDesk {
 public:
  explicit NoLeases(std::string why) : why_(std::move(why)) {}

  std::shared_ptr<const LeaseAnswer> Call(LeaseCall call) override;
  std::vector<LeaseShown> List() const override { return {}; }
  LeaseCounts counts() const override;

 private:
  const std::string why_;
  std::atomic<uint64_t> refused_ = 0;
};

}  // namespace firn
