// The files of a ClaimKeeper: the hint and the grant.

#include <algorithm>
#include <string>
#include <utility>

#include "common/base/cat.h"
#include "registry/claim/claim_keeper.h"

namespace firn {
namespace {

constexpr Milliseconds kHintInterval{60'000};
constexpr auto kVolatile = StateFolder::Durability::kPageCache;
constexpr GrantEnd kStuckFile{.why = "the grant file in memory can be neither written nor removed",
                              .passes = false};

}  // namespace

void ClaimKeeper::LoadFiles() {
  started_ = unreached_since_ = now_.clocks.boot;
  LoadGrant();
  const Result<std::string> text = folder_.ReadHint();
  if (!text.ok()) {
    if (text.code() != Code::kNotFound) Tell(ClaimEvent::Kind::kAlarm, text.status().message());
    return;
  }
  const Result<Hint> hint = ParseHint(*text);
  if (!hint.ok()) return Tell(ClaimEvent::Kind::kAlarm, hint.status().message());
  hint_ = *hint;
  uuid_ = hint->uuid;
}

void ClaimKeeper::LoadGrant() {
  if (!has_file_) {
    grant_trouble_ = "no grant file, so the server cannot resume its claim after a crash: " +
                     folder_.has_grant().message();
    return Tell(ClaimEvent::Kind::kAlarm, grant_trouble_);
  }
  const Result<GrantFile::Found> found = grant_file_.Read();
  if (!found.ok()) {
    if (found.code() != Code::kNotFound) Tell(ClaimEvent::Kind::kAlarm, found.status().message());
    return;
  }
  const Grant& grant = found->grant;
  std::string fault;
  if (found->damaged) {
    // The valid record may be the older one, and its L too low.
    fault = "the grant file is damaged";
  } else if (found->identity.boot_id != grant_file_.identity().boot_id) {
    fault = "the grant file is from before the last boot";
  } else if (found->identity != grant_file_.identity()) {
    fault = "the grant file is a copy, or was restored from a backup";
  } else if (grant.uuid.empty()) {
    fault = "the grant file belongs to a static machine id, without a cluster";
  } else if (grant.limit > grant.bound) {
    fault = "the grant file contradicts itself";
  } else if (grant.slot.rack != options_.rack ||
             options_.worker.value_or(grant.slot.worker) != grant.slot.worker) {
    fault = "the grant file belongs to another slot than the requested one";
  }
  last_claim_ = Tenure::TermsOf(grant);  // only for names, so a grant with a fault serves, too
  if (!fault.empty()) return Tell(ClaimEvent::Kind::kRefused, fault + "; making a new claim");
  grant_ = grant;
  highest_bound_ = grant.bound;
  grant_tells_time_ = grant.clocks.Tells(now_.clocks.boot, options_.time_namespace);
  if (grant_tells_time_) {
    SetIdClock(grant.clocks.TimeAt(now_.clocks.boot));
  } else {
    Tell(ClaimEvent::Kind::kRefused,
         "the grant was written in another time namespace, so its clock is not valid here; "
         "the claim is resumed only after a check of the registry's clock");
  }
}

// Stores the slot and the state of the registry, with which a later start compares (Acquisition).
void ClaimKeeper::KeepHint() {
  const Tenure::Terms& terms = tenure_->terms();
  Hint hint{terms.machine.value(), terms.slot, terms.uuid, options_.layout.text()};
  hint.era = terms.era;
  hint.root_version = terms.meta_version;
  hint.last = options_.layout.StartOf(seen_);
  hint.claim = terms.nonce;
  hint.version = terms.version;
  hint.created_zxid = terms.created_zxid;
  const bool same = hint_.has_value() && hint_->uuid == hint.uuid && hint_->slot == hint.slot;
  keep_hint_at_ = now_.clocks.boot + kHintInterval;
  // Started without the registry, which was not read since: the claim may be of a later era than
  // the hint, whose file could not be written. No floor lies above ids that are noted in the wrong
  // era.
  if (same && hint.era.zero()) return;
  if (same) hint.last = std::max(hint.last, hint_->last);
  if (hint_ == hint) return;
  folder_.KeepHint(FormatHint(hint));
  hint_ = hint;
}

// False: the file contains an older permission and cannot be removed.
bool ClaimKeeper::KeepGrant(WallMs limit) {
  if (!has_file_) return true;
  const ClockPair clocks{now_.id_time, now_.clocks.boot, options_.time_namespace};
  const Status written = grant_file_.Write(tenure_->GrantUpTo(limit, clocks), kVolatile);
  if (written.ok()) {
    stuck_ = false;
    grant_trouble_.clear();
    return true;
  }
  // The older grant on disk must not be used after ids were issued without one.
  const Status removed = grant_file_.Remove();
  has_file_ = !removed.ok();
  const bool known = std::exchange(stuck_, has_file_);
  grant_trouble_ = "the grant file cannot be written: " + written.message();
  if (stuck_) {
    grant_trouble_ +=
        "; it cannot be removed either, so issuing stops at its limit: " + removed.message();
    tenure_->claim()->Explain(kStuckFile);
  }
  if (!known) Tell(ClaimEvent::Kind::kAlarm, grant_trouble_);
  return !stuck_;
}

// False: an unusable permission stays in the file, and an alarm is raised.
bool ClaimKeeper::VoidGrant() {
  if (!has_file_) return true;
  const Status voided = grant_file_.Void(kVolatile);
  if (voided.ok()) return true;
  if (grant_file_.Remove().ok()) {
    has_file_ = false;
    return true;
  }
  Tell(ClaimEvent::Kind::kAlarm,
       "the grant file can be neither voided nor removed: " + voided.message());
  return false;
}

// Removes a void grant file when this process makes no further claim. No other process uses the
// file, and a later start treats a missing file like a void one.
void ClaimKeeper::ForgetGrant() {
  if (has_file_) has_file_ = !grant_file_.Remove().ok();
}

}  // namespace firn
