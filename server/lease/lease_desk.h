#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/units.h"
#include "common/id/lease_grant.h"

namespace firn {

// Requests of programs for leases of machine ids, and a server's replies, as values. A token or
// turn is 128 random bits as 32 lower-case hexadecimal digits.

// How far ahead of now an interval ends by default. A server never grants more than its claim
// window, even if the request asks for more.
inline constexpr Milliseconds kLeaseAhead{60'000};

// The client that requests a lease, by its name in the file of rights. Its leases count together
// for its limit.
struct LeaseClient {
  std::string name{};                  // empty: there is no file of rights
  std::optional<size_t> leases_max{};  // at this server; empty: no limit for this client
};

// A request for a lease. Requests with the same token get the same lease.
struct LeaseAsk {
  std::string token{};
  std::string name{};
  std::optional<Milliseconds> ahead{};  // how far ahead of now its interval ends; see kLeaseAhead
  std::optional<uint32_t> rack{};
  WallMs clock{};  // the program's wall clock
  LeaseClient client{};
};

// A request for a later end. Each renewal has a new `turn`; a retry repeats it.
struct LeaseRenewal {
  std::string lease{};
  std::string turn{};
  std::string acknowledged{};  // the turn of the last answered renewal; empty: none was answered
  std::optional<Milliseconds> ahead{};
  WallMs clock{};
};

// Gives a lease back. The program must have stopped issuing under it.
struct LeaseEnd {
  std::string lease{};
  std::string turn{};          // the last turn sent, answered or not; empty: none was sent
  std::optional<Tick> used{};  // the highest tick used; empty: unknown
};

using LeaseCall = std::variant<LeaseAsk, LeaseRenewal, LeaseEnd>;

enum class LeaseVerdict {
  kGranted,     // or renewed
  kEnded,       // by request
  kBadRequest,  // the request must be corrected
  kUnknown,     // this server has no such lease: it has ended, or the server has restarted
  kOutdated,    // a retry that arrived after a later request: it has no effect
  kRevoked,     // stop issuing at once
  kElsewhere,   // another server granted the lease
  kLater,       // retry with the same token or turn
  kLimit,       // the client has reached its limit; retry once one of its leases has ended
  kRefused,     // this server grants no leases
};
inline constexpr size_t kLeaseVerdicts = 10;

// Returns a lower-case word for metrics.
std::string_view LeaseVerdictName(LeaseVerdict verdict);

struct LeaseReply {
  LeaseVerdict verdict = LeaseVerdict::kLater;
  std::string message{};        // of a refusal: a sentence
  Milliseconds retry_after{0};  // of kLater and kLimit
  bool claiming = false;        // of kLater: a claim for the token is under way at this server
  LeaseGrant terms{};           // of kGranted; of kElsewhere: only `server` is set
};

// A reply that the control thread gives later, exactly once. Thread-safe.
class LeaseAnswer {
 public:
  void Give(LeaseReply reply) {
    reply_ = std::move(reply);
    given_.store(true, std::memory_order_release);
  }
  // Returns null until the reply has been given.
  const LeaseReply* Get() const {
    return given_.load(std::memory_order_acquire) ? &reply_ : nullptr;
  }

 private:
  LeaseReply reply_;
  std::atomic<bool> given_{false};
};

// A lease without its secrets: a valid one, or an ended one whose machine id is not free yet.
struct LeaseShown {
  uint64_t number = 0;
  std::string name{};
  std::string client{};  // see LeaseClient
  MachineId machine{};
  uint32_t worker = 0, rack = 0;
  WallMs from{}, until{}, bound{};  // `bound`: of the claim that backs it
  bool ending = false;
  std::string trouble{};  // why it is revoked, or why its bound is final
};

// The number of a rack's machine ids for leases, at the server's last reading.
struct LeaseRoom {
  uint32_t rack = 0;
  uint64_t usable = 0, free = 0;
};

struct LeaseCounts {
  uint64_t held = 0;                  // the leases that List returns
  uint64_t granted = 0, renewed = 0;  // repeated answers count once
  uint64_t ended = 0;
  uint64_t expired = 0;  // not renewed in time
  uint64_t copies = 0;   // revoked because two copies of a program renewed the lease
  uint64_t lost = 0;     // revoked because the slot was lost or claimed by another server
  std::array<uint64_t, kLeaseVerdicts> refused{};  // by verdict
  std::vector<LeaseRoom> rooms{};                  // of the racks that have leases
};

// The interface of a server's leases for its front. Thread-safe; never blocks.
class LeaseDesk {
 public:
  virtual ~LeaseDesk() = default;

  // Starts a call. The reply may arrive before or after the return. A caller that stops waiting can
  // repeat the call.
  virtual std::shared_ptr<const LeaseAnswer> Call(LeaseCall call) = 0;

  // Returns the leases, sorted by number.
  virtual std::vector<LeaseShown> List() const = 0;
  virtual LeaseCounts counts() const = 0;

  // Returns the highest bound of a lease of this process or an earlier one; 0 if there is none.
  virtual WallMs highest_bound() const { return {}; }
};

}  // namespace firn
