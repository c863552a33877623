#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "registry/cluster/slot.h"
#include "registry/state/owner.h"

namespace firn {

// What a server says of itself in its slot's record.
struct ClaimantIdentity {
  std::string owner;     // OwnerName::TextIn()
  std::string endpoint;  // host:port
  std::string host{};
  int64_t pid = 0;
  std::string build{};
};

// Stands for the time namespace where a kernel has but one.
inline constexpr uint64_t kOnlyTimeNamespace = 1;

struct ClaimOptions {
  ClaimantIdentity identity{};
  Layout layout = Layout::Firn();
  uint32_t rack = 0;
  std::optional<uint32_t> worker{};  // this slot or none

  Milliseconds window{600'000};  // how far a bound is moved ahead, once a claim has proved itself
  Milliseconds session_timeout{10'000};
  // Between our wall clock and the registry's at a claim, and between two of its readings.
  Milliseconds skew_max{10'000};
  bool registry_shares_clock = false;  // its clock is this host's, so that they always agree
  Milliseconds probation{0};           // from the claim to the first id
  // How old a root node with a floor must be before a new claim issues under it: whoever still
  // serves under what was there before the restore shall have had the time to come and freeze it
  // again.
  Milliseconds restore_probation{10'000};
  Milliseconds release_wait{3'000};       // for the answer to a release
  bool offline_start = true;              // go on inside an old claim while the registry is away
  Milliseconds offline_start_after{300};  // how long a start waits for the registry first
  // In which the boot clock is read, see ClockPair. 0: not known, so that no grant tells the time.
  uint64_t time_namespace = kOnlyTimeNamespace;

  // Faults of the options, all at once.
  Status Check() const;
};

// Fixed by the protocol.
inline constexpr Milliseconds kClaimWindowFirst{15'000};  // so that a crash loop burns no slots
inline constexpr Milliseconds kClaimWindowSecond{60'000};
inline constexpr Milliseconds kGrantAhead{200};  // L runs ahead of the id clock by this
// How long after its bound a slot is left to whoever's `live` is in it: a holder that cannot renew
// comes back by itself; what is older was left behind, by an attempt that nobody believed in or by
// a session that a rolled back registry brought back.
inline constexpr Milliseconds kLiveGrace{60'000};
inline constexpr Milliseconds kPoisonAhead{86'400'000};  // a bound farther ahead is someone's error

}  // namespace firn
