#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/slot.h"
#include "registry/state/kept_bounds.h"

namespace firn {

// A file that survives a crash of the machine.
class LeaseMemory {
 public:
  using Kept = std::function<void(const Status& kept)>;

  virtual ~LeaseMemory() = default;

  // Starts to replace the file's text and returns at once. Calls `done` later, on the control
  // thread: with ok once the text is durable. After a failure the file may contain the old or the
  // new text. At most one write may be in flight.
  virtual void Keep(std::string text, Kept done) = 0;
};

// The bounds of this server's leases, stored in its state folder. Lessees do not read the registry,
// so without this file a restarted server would not notice that the registry has lost a bound.
// Beside each bound is the line from which the lease is resumed (KeptLease).
//
//  1. The file contains a bound before ids below it are promised. The registry has acknowledged the
//     bound, so an intact registry never shows a lower one.
//  2. The file contains a lower bound, and the lease's current text, before the bound is lowered in
//     the registry. Otherwise the next process would assume that the bound was never lowered.
//  3. A bound is removed from the file once every clock has passed it.
//
// The file is written when a promise exceeds the stored bound, about once per claim window for each
// lease, and when a lease ends. Owned by the control thread.
class LeaseBounds {
 public:
  // `earlier` is the file's content as an earlier process of this server left it, `boot` the id of
  // this boot. `memory` must outlive the object.
  LeaseBounds(LeaseMemory& memory, KeptBounds earlier, std::string boot);
  LeaseBounds(const LeaseBounds&) = delete;
  LeaseBounds& operator=(const LeaseBounds&) = delete;

  // Schedules a write of a slot's bound. `uuid` is the cluster's.
  void Keep(const std::string& uuid, const KeptBound& bound);

  // Returns whether the file certainly contains this bound or a higher one, with the same lease,
  // for the same claim.
  bool Covers(const std::string& uuid, const KeptBound& least) const;
  // Returns whether the file certainly does not contain the slot, or contains it with this bound or
  // a lower one and this text of the lease.
  bool MayLower(Slot slot, WallMs bound, const std::string& lease) const;

  // Drops bounds that `now` has passed by `margin`, and starts a write if one is due.
  void Tick(BootMs boot, WallMs now, Milliseconds margin);

  // Returns whether the file contains all changes.
  bool written() const { return !changed_ && !in_flight_; }
  // The result of the last write.
  const Status& trouble() const { return trouble_; }
  // The highest bound; 0 if there are none.
  WallMs highest() const;

 private:
  using Table = std::map<Slot, KeptBound>;

  void Write(BootMs boot);
  void NoteWritten(const Status& kept);

  LeaseMemory& memory_;
  std::string uuid_;
  // The boot id at the process's start, even if the running machine was copied later. The copy's
  // next process has another boot id, so it does not resume the original's leases.
  const std::string boot_;
  Table wanted_;
  Table durable_;
  std::optional<Table> in_flight_{};
  bool changed_ = false;
  Status trouble_;
  BootMs write_at_;  // the earliest time of the next write
  // Lets a callback detect that the object has been destroyed.
  const std::shared_ptr<LeaseBounds*> self_ = std::make_shared<LeaseBounds*>(this);
};

}  // namespace firn
