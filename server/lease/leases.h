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

// The leases of a server, between its front and its control thread.
//
// Call, List and counts: any thread. OnSession and Tick: the control thread. The
// next Tick handles a call, by its own time: after a pause of the process, the last Tick's time is
// outdated.
class Leases final : public LeaseDesk {
 public:
  // `stem`: see LeaseFile. The references must outlive the object. It ends on the control thread,
  // or after that has stopped. Calls that are posted then get an answer, and touch nothing of it.
  Leases(const LeaseTableOptions& options, ControlLoop& loop, Entropy& entropy,
         const std::string& stem);

  std::shared_ptr<const LeaseAnswer> Call(LeaseCall call) override;
  std::vector<LeaseShown> List() const override;
  LeaseCounts counts() const override;
  // The highest bound of a lease, of this process or an earlier one; 0: none.
  WallMs highest_bound() const;

  void OnSession(const SessionEvent& event) { core_->table.OnSession(event); }
  void Tick(const KeeperTime& now, LeaseTable::Server server);

  // Grants and extends no further lease, and lowers their bounds to what was promised: machine ids
  // that nothing extends are free sooner, and the next process can resume the leases. Blocks; not
  // on the control thread, which must run.
  void StopWithin(Milliseconds time);

 private:
  // What posted calls use. They do not own it: the object's end is the end of its leases.
  struct Core {
    Core(const LeaseTableOptions& options, ControlLoop& loop, Entropy& entropy,
         const std::string& stem);
    ~Core();

    std::atomic<int> posted = 0;  // calls that the table has not handled yet
    // Those that have reached the control thread, which alone uses this.
    std::vector<std::pair<LeaseCall, std::shared_ptr<LeaseAnswer>>> calls;
    LeaseFile file;
    LeaseTable table;  // of the control thread, like the next member
    LeaseShares shares;
  };

  void HandleCalls();

  ControlLoop& loop_;
  const std::shared_ptr<Core> core_;
  BootMs show_at_;  // of the control thread

  mutable std::mutex mutex_;  // guards what the last Tick has shown
  std::vector<LeaseShown> shown_;
  LeaseCounts counts_;
  WallMs highest_bound_;
};

// The desk of a server that can grant no leases: refuses every call, with the reason. Thread-safe.
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
