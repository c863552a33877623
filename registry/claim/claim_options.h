#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/state/kept_bounds.h"
#include "registry/state/owner.h"

namespace firn {

// How a server identifies itself in its slot's record.
struct ClaimantIdentity {
  std::string owner;     // OwnerName::TextIn()
  std::string endpoint;  // host:port
  std::string host{};
  int64_t pid = 0;
  std::string build{};
};

// The time namespace of a kernel that has only one.
inline constexpr uint64_t kOnlyTimeNamespace = 1;

struct ClaimOptions {
  ClaimantIdentity identity{};
  Layout layout = Layout::Firn();
  uint32_t rack = 0;
  std::optional<uint32_t> worker{};  // claim only this slot
  // The claim backs this lease (LeaseClaim): it takes slots for leases only, and of released ones
  // only those whose bound has passed.
  std::optional<SlotLease> lease{};

  // Of leases that an earlier process of this server granted. Until they have passed, a registry
  // that shows less has lost data.
  KeptBounds kept{};
  // Why `kept` could not be read, with the remedy: nothing is claimed. Empty: it could.
  std::string kept_fault{};

  Milliseconds window{600'000};  // how far ahead a bound is set, after the first two renewals
  Milliseconds session_timeout{10'000};
  // Maximum difference between the wall clock and the registry's clock at a claim, and between the
  // believed time and a later reading.
  Milliseconds skew_max{10'000};
  bool registry_shares_clock = false;  // its clock is this host's, so they always agree
  Milliseconds probation{0};           // from the claim to the first id
  // Minimum age of a root node with a floor before a new claim issues under it. Holders of claims
  // from before the restore need this time to freeze the cluster again.
  Milliseconds restore_probation{10'000};
  Milliseconds release_wait{3'000};       // for the answer to a release
  bool offline_start = true;              // resume a claim while the registry is unreachable
  Milliseconds offline_start_after{300};  // how long a start waits for the registry first
  // The namespace of the boot clock, see ClockPair. 0: unknown, so no grant can set the id clock.
  uint64_t time_namespace = kOnlyTimeNamespace;

  // Returns all faults of the options.
  Status Check() const;
};

// Fixed by the protocol.
inline constexpr Milliseconds kClaimWindowFirst{15'000};  // short: a crash loop wastes little time
inline constexpr Milliseconds kClaimWindowSecond{60'000};
inline constexpr Milliseconds kGrantAhead{200};  // how far L is ahead of the id clock
// How long after its bound a slot stays reserved for the session of its `live` node. A holder that
// cannot renew returns within this time. An older `live` remains from an attempt whose outcome is
// unknown, or from a session that a rolled back registry restored.
inline constexpr Milliseconds kLiveGrace{60'000};
inline constexpr Milliseconds kPoisonAhead{86'400'000};  // a bound further ahead is an error
inline constexpr Milliseconds kWindowMax = kPoisonAhead / 4;

}  // namespace firn
