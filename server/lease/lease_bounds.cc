#include "server/lease/lease_bounds.h"

#include <algorithm>
#include <utility>

namespace firn {
namespace {

constexpr Milliseconds kRetryAfter{500};

}  // namespace

LeaseBounds::LeaseBounds(LeaseMemory& memory, KeptBounds earlier, std::string boot)
    : memory_(memory), uuid_(std::move(earlier.uuid)), boot_(std::move(boot)) {
  // If the boot id differs, the file may be a copy, and its leases may be those of another server.
  const bool is_own = !boot_.empty() && earlier.boot == boot_;
  for (KeptBound& one : earlier.bounds) {
    if (!is_own) one.lease.clear();
    wanted_[one.slot] = std::move(one);
  }
  durable_ = wanted_;
}

void LeaseBounds::Keep(const std::string& uuid, const KeptBound& bound) {
  const auto known = wanted_.find(bound.slot);
  if (known != wanted_.end() && known->second == bound && uuid == uuid_) return;
  // The bounds of another cluster are meaningless in this one.
  if (std::exchange(uuid_, uuid) != uuid) {
    wanted_.clear();
    durable_.clear();
  }
  wanted_[bound.slot] = bound;
  changed_ = true;
}

bool LeaseBounds::Covers(const std::string& uuid, const KeptBound& least) const {
  const auto has = [&least](const Table& table) {
    const auto one = table.find(least.slot);
    return one != table.end() && one->second.era == least.era &&
           one->second.created_zxid == least.created_zxid && one->second.bound >= least.bound &&
           one->second.claim == least.claim && one->second.lease == least.lease;
  };
  // A bound that is about to be lowered no longer covers anything.
  return uuid == uuid_ && has(durable_) && has(wanted_);
}

bool LeaseBounds::MayLower(Slot slot, WallMs bound, const std::string& lease) const {
  const auto permits = [&](const Table& table) {
    const auto kept = table.find(slot);
    return kept == table.end() || (kept->second.bound <= bound && kept->second.lease == lease);
  };
  return permits(durable_) && permits(wanted_) && (!in_flight_ || permits(*in_flight_));
}

void LeaseBounds::Tick(BootMs boot, WallMs now, Milliseconds margin) {
  // The file must not contain a lease whose slot may be released.
  const auto over = [&](const auto& one) { return one.second.bound + margin <= now; };
  changed_ |= std::erase_if(wanted_, over) > 0;
  if (changed_ && !in_flight_ && boot >= write_at_) Write(boot);
}

void LeaseBounds::Write(BootMs boot) {
  changed_ = false;
  write_at_ = boot + kRetryAfter;
  in_flight_ = wanted_;
  KeptBounds kept{.uuid = uuid_, .boot = boot_};
  for (const auto& [slot, one] : wanted_) kept.bounds.push_back(one);
  memory_.Keep(FormatKeptBounds(kept),
               [weak = std::weak_ptr<LeaseBounds*>(self_)](const Status& done) {
                 if (const auto self = weak.lock()) (*self)->NoteWritten(done);
               });
}

// After a failure the file contains the old or the new text, so only what both contain is certain.
// A slot's bound is lowered only after the last promise for it, and raised again only after the
// lower bound was durable.
void LeaseBounds::NoteWritten(const Status& kept) {
  trouble_ = kept;
  if (kept.ok()) {
    durable_ = *std::move(in_flight_);
    write_at_ = {};
  } else {
    changed_ = true;
  }
  in_flight_.reset();
}

WallMs LeaseBounds::highest() const {
  WallMs highest;
  for (const auto& [slot, one] : wanted_) highest = std::max(highest, one.bound);
  return highest;
}

}  // namespace firn
