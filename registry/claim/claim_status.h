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

// A keeper's state, with the numbers of the rules in claim_keeper.h.
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

// Results of the attempts to raise a bound.
struct RenewalCounts {
  uint64_t done = 0;
  uint64_t failed = 0;  // including outcomes that stayed unknown

  RenewalCounts& operator+=(const RenewalCounts& other) {
    done += other.done;
    failed += other.failed;
    return *this;
  }
};

// A server's view of its machine id, for status, metrics and its provider node.
struct ClaimStatus {
  ClaimState state = ClaimState::kSeeking;
  std::optional<Slot> slot{};          // while holding or lapsing
  std::optional<MachineId> machine{};  // of the slot
  Nonce nonce;
  WallMs bound;  // R; without a claim, the highest R ever held; never below what the registry lost
  WallMs limit;  // L; R if there is no grant file
  // From the id clock to R, or to L if that cannot rise; 0 when reached.
  Milliseconds left{0};
  RenewalCounts renewals;     // of all claims since the process began
  int copies = 0;             // how often this machine, while it ran, was found to be a copy
  bool connected = false;     // to the registry
  int64_t session = 0;        // the latest session
  std::string uuid;           // of the cluster; empty until known
  std::string reason;         // why it does not serve, or will stop soon; empty if it serves
  std::string grant_trouble;  // why the grant cannot be written, with the file's name
  std::string clock_trouble;  // why the registry's clock is not believed, as a sentence
  // How far that clock's last reading is ahead of the believed time; 0: it is believed.
  Milliseconds registry_clock_off{0};
  Milliseconds retry_after{0};  // while it does not serve: when to retry
  // The local clock was compared with the registry's, or with that of a dead process of this boot.
  bool clock_checked = false;
};

// Whether the cluster needs `firn restore` before the server can claim or renew.
bool AsksForRestore(const ClaimStatus& status);

// An event for operators. An alarm means that a guarantee is, or may be, broken by an external
// cause. The other kinds are normal operation.
struct ClaimEvent {
  enum class Kind { kClaimed, kInherited, kOffline, kReleased, kLost, kRefused, kAlarm };
  Kind kind;
  std::string text;  // a sentence
};

std::string_view ClaimEventName(ClaimEvent::Kind kind);

// Callbacks of a keeper, called on the control thread inside Tick. Any may be empty; none may call
// the keeper.
struct ClaimHooks {
  std::function<void(const ClaimEvent&)> event{};
  // The registry's clock at `now`, if it has one.
  std::function<void(WallMs registry, Now now)> registry_clock{};
  // The believed time at `now`, after each reading.
  std::function<void(WallMs registry, Now now)> believed_clock{};
};

}  // namespace firn
