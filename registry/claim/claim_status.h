#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>

#include "common/base/units.h"
#include "common/time/clock.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/slot.h"

namespace firn {

// Where a keeper stands; the numbers are those of the rules in claim_keeper.h.
enum class ClaimState {
  kSeeking = 1,
  kClaiming = 2,
  kHolding = 3,
  kLapsing = 4,
  kReleasing = 5,
  kReleased = 6,
};

// One lower-case word.
std::string_view ClaimStateName(ClaimState state);
std::ostream& operator<<(std::ostream& out, ClaimState state);

// What became of attempts to move a bound ahead.
struct RenewalCounts {
  uint64_t done = 0;
  uint64_t failed = 0;  // outcomes that stayed unknown included

  RenewalCounts& operator+=(const RenewalCounts& other) {
    done += other.done;
    failed += other.failed;
    return *this;
  }
};

// What a server shows of its machine id: in status, metrics, and its provider node.
struct ClaimStatus {
  ClaimState state = ClaimState::kSeeking;
  std::optional<Slot> slot{};          // while holding or lapsing
  std::optional<MachineId> machine{};  // the same as a number
  Nonce nonce;
  WallMs bound;  // R; the highest ever held, while no claim is
  WallMs limit;  // L; R where there is no grant file
  // From the id clock to R, or to L when that can rise no more; 0 when reached.
  Milliseconds left{0};
  RenewalCounts renewals;     // of all claims since the process began
  bool connected = false;     // to the registry
  int64_t session = 0;        // last one
  std::string uuid;           // of the cluster; empty until known
  std::string reason;         // why it does not serve, or not for long; empty when all is well
  std::string grant_trouble;  // why its grant is not on file as it should be, with the file's name
  std::string clock_trouble;  // why the registry's clock is not believed, as a sentence
  // How far that clock, as heard last, lies ahead of the time that is believed; 0: it is believed.
  Milliseconds registry_clock_off{0};
  Milliseconds retry_after{0};  // when it does not serve: when to ask again
};

// Whether an operator has to put the cluster's data right before it can go on.
bool AsksForRestore(const ClaimStatus& status);

// Something that an operator may want to know. An alarm is a promise in danger or broken from
// outside; the others are a claim's ordinary life.
struct ClaimEvent {
  enum class Kind { kClaimed, kInherited, kOffline, kReleased, kLost, kRefused, kAlarm };
  Kind kind;
  std::string text;  // a sentence
};

std::string_view ClaimEventName(ClaimEvent::Kind kind);

// What a keeper tells its owner, on the control thread, inside Tick. Any may be empty; none may
// call the keeper.
struct ClaimHooks {
  std::function<void(const ClaimEvent&)> event{};
  // What the registry's own clock showed, where it has one, at `now`.
  std::function<void(WallMs registry, Now now)> registry_clock{};
  // Its time as it is believed at `now`, after each reading.
  std::function<void(WallMs registry, Now now)> believed_clock{};
};

}  // namespace firn
