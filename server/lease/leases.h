#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "common/time/entropy.h"
#include "registry/seam/control_loop.h"
#include "server/lease/lease_desk.h"
#include "server/lease/lease_file.h"
#include "server/lease/lease_table.h"

namespace firn {

// The leases of a server, between its front and its control thread.
//
// Call, List and counts: any thread. OnSession, Tick and Stop: the control thread.
class Leases final : public LeaseDesk {
 public:
  // `stem`: see LeaseFile. The references must outlive the object, and `loop` must have stopped
  // before its end.
  Leases(LeaseOptions options, ControlLoop& loop, Entropy& entropy, const std::string& stem);

  std::shared_ptr<const LeaseAnswer> Call(LeaseCall call) override;
  std::vector<LeaseShown> List() const override;
  LeaseCounts counts() const override;
  // The highest bound of a lease, of this process or an earlier one; 0: none.
  WallMs highest_bound() const;

  void OnSession(const SessionEvent& event) { table_.OnSession(event); }
  void Tick(const KeeperTime& now, LeaseTable::Server server);
  void Stop() { table_.Stop(); }

 private:
  ControlLoop& loop_;
  std::atomic<int> posted_ = 0;
  LeaseFile file_;
  LeaseTable table_;  // of the control thread, like the next member
  BootMs show_at_;

  mutable std::mutex mutex_;  // guards what the last Tick has shown
  std::vector<LeaseShown> shown_;
  LeaseCounts counts_;
  WallMs highest_bound_;
};

// The desk of a server that can grant no leases, and says why.
class NoLeases final : public LeaseDesk {
 public:
  explicit NoLeases(std::string why) : why_(std::move(why)) {}

  std::shared_ptr<const LeaseAnswer> Call(LeaseCall call) override;
  std::vector<LeaseShown> List() const override { return {}; }
  LeaseCounts counts() const override { return {}; }

 private:
  const std::string why_;
};

}  // namespace firn
