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

// A file that outlives the machine.
class LeaseMemory {
 public:
  using Kept = std::function<void(const Status& kept)>;

  virtual ~LeaseMemory() = default;

  // Starts to replace the file's text and returns at once. `done` is called on the control thread,
  // later: ok once the text is durable; after a failure the file may have either text. One at a
  // time.
  virtual void Keep(std::string text, Kept done) = 0;
};

// The bounds under which programs may issue by themselves, in this server's state folder. Otherwise
// a start would not notice that the registry has lost them: a lessee reads no registry. Beside each
// is what a start needs to resume the lease.
//
//  1. A bound is in the file before ids below it are promised. It is one that the registry has
//     acknowledged, so an intact registry never shows less.
//  2. Before the registry is sent a lower bound, the file has it, and the lease's present text: the
//     next start would otherwise take the lease for one whose bound was never lowered.
//  3. A bound leaves the file when every clock has passed it.
//
// The file is written when a promise is above its bound, about once a claim window for each lease,
// and at the lease's end. Owned by the control thread.
class LeaseBounds {
 public:
  // `earlier` is what an earlier process of this server has left, `boot` the id of this boot.
  // `memory` must outlive it.
  LeaseBounds(LeaseMemory& memory, KeptBounds earlier, std::string boot);
  LeaseBounds(const LeaseBounds&) = delete;
  LeaseBounds& operator=(const LeaseBounds&) = delete;

  // Puts a slot's bound into the file, soon. `uuid` is the cluster's.
  void Keep(const std::string& uuid, const KeptBound& bound);

  // Whether the file certainly has at least that bound, and that lease, for the same claim.
  bool Covers(const std::string& uuid, const KeptBound& least) const;
  // Whether the file certainly has at most that bound for the slot, with this text of its lease, or
  // does not name the slot.
  bool MayLower(Slot slot, WallMs bound, const std::string& lease) const;

  // Starts a write that is due, and drops bounds that `now` has passed by `margin`.
  void Tick(BootMs boot, WallMs now, Milliseconds margin);

  // Whether the file has all that was kept.
  bool written() const { return !changed_ && !in_flight_; }
  // Why the last write failed; ok if it did not.
  const Status& trouble() const { return trouble_; }
  // The highest bound in it; 0: there is none.
  WallMs highest() const;

 private:
  using Table = std::map<Slot, KeptBound>;

  void Write(BootMs boot);
  void NoteWritten(const Status& kept);

  LeaseMemory& memory_;
  std::string uuid_;
  // As of the process's start, also after the machine was copied while it ran. So the next process
  // of the copy, which has another boot id, resumes nothing: the file has leases of the original.
  const std::string boot_;
  Table wanted_;
  Table durable_;
  std::optional<Table> in_flight_{};
  bool changed_ = false;
  Status trouble_;
  BootMs write_at_;  // not before
  // For answers that come after the object's end.
  const std::shared_ptr<LeaseBounds*> self_ = std::make_shared<LeaseBounds*>(this);
};

}  // namespace firn
