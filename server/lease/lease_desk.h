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
#include "common/id/layout.h"

namespace firn {

// What programs ask of a server about leases of machine ids, and what it answers, as values. Tokens
// and turns are texts of 128 random bits: 32 lower-case hexadecimal digits.

// How far ahead of now an interval ends unless the request says it. A server with a shorter claim
// window gives that window, whatever the request says.
inline constexpr Milliseconds kLeaseAhead{60'000};

// The client that requests a lease, as the file of rights knows it; its leases count together.
struct LeaseClient {
  std::string name{};                  // empty: there is no such file
  std::optional<size_t> leases_max{};  // at this server; empty: no limit of its own
};

// A request for a lease. The same token gets the same lease.
struct LeaseAsk {
  std::string token{};
  std::string name{};
  std::optional<Milliseconds> ahead{};  // how far ahead of now its interval ends; see kLeaseAhead
  std::optional<uint32_t> rack{};
  WallMs clock{};  // the program's wall clock
  LeaseClient client{};
};

// A request for a later end. `turn` is new for each renewal, and the same in its repetitions.
struct LeaseRenewal {
  std::string lease{};
  std::string turn{};
  std::string acknowledged{};  // the turn of the last answer; empty: there was none
  std::optional<Milliseconds> ahead{};
  WallMs clock{};
};

// Gives a lease back. The program must have stopped to issue under it.
struct LeaseEnd {
  std::string lease{};
  std::string turn{};          // the last one sent, answered or not; empty: none was
  std::optional<Tick> used{};  // the highest tick used; empty: unknown
};

using LeaseCall = std::variant<LeaseAsk, LeaseRenewal, LeaseEnd>;

enum class LeaseVerdict {
  kGranted,     // or renewed
  kEnded,       // by request
  kBadRequest,  // fix the request
  kUnknown,     // this server has no such lease: it has ended, or the server has restarted
  kOutdated,    // a repetition that came after a later request: nothing is promised, nothing ends
  kRevoked,     // stop issuing at once
  kElsewhere,   // another server's; `server` names it
  kLater,       // try again: the same token, the same turn
  kLimit,       // the client has all leases that it may have; try again once one has ended
  kRefused,     // this server grants no leases
};
inline constexpr size_t kLeaseVerdicts = 10;

// A lower-case word for metrics.
std::string_view LeaseVerdictName(LeaseVerdict verdict);

// The program may issue ids of `machine` with ticks in [from, until).
struct LeaseTerms {
  std::string lease{};  // secret; names its server
  uint64_t number = 0;  // public; no later process of the server uses it again
  MachineId machine{};
  uint32_t worker = 0, rack = 0;
  Tick from{}, until{};
  Milliseconds renew_in{0};
  bool ending = false;  // it will not be renewed: take another one in time
};

struct LeaseReply {
  LeaseVerdict verdict = LeaseVerdict::kLater;
  std::string message{};        // of a refusal, as a sentence
  Milliseconds retry_after{0};  // of kLater and kLimit
  bool claiming = false;        // of kLater: a claim for the token is under way at this server
  std::string server{};         // of kGranted and kElsewhere: the server that has the lease
  LeaseTerms terms{};           // of kGranted
};

// A reply that comes later, from the control thread. Given once; thread-safe.
class LeaseAnswer {
 public:
  void Give(LeaseReply reply) {
    reply_ = std::move(reply);
    given_.store(true, std::memory_order_release);
  }
  // Null until it is given.
  const LeaseReply* Get() const {
    return given_.load(std::memory_order_acquire) ? &reply_ : nullptr;
  }

 private:
  LeaseReply reply_;
  std::atomic<bool> given_{false};
};

// A living lease, or one that has ended and still has its machine id; without its secrets.
struct LeaseShown {
  uint64_t number = 0;
  std::string name{};
  std::string client{};  // see LeaseClient
  MachineId machine{};
  uint32_t worker = 0, rack = 0;
  WallMs from{}, until{}, bound{};  // `bound`: of the claim that backs it
  bool ending = false;
  std::string trouble{};  // why it is revoked, or will not be renewed
};

// The machine ids for leases of a rack, as the server has read them last.
struct LeaseRoom {
  uint32_t rack = 0;
  uint64_t usable = 0, free = 0;
};

struct LeaseCounts {
  uint64_t held = 0;                  // as shown
  uint64_t granted = 0, renewed = 0;  // answered so; repeated answers count once
  uint64_t ended = 0;
  uint64_t expired = 0;  // neither renewed nor given back
  uint64_t copies = 0;   // revoked, because two copies of a program renewed them
  uint64_t lost = 0;     // revoked, because the registry lost them or gave them to others
  std::array<uint64_t, kLeaseVerdicts> refused{};  // by verdict
  std::vector<LeaseRoom> rooms{};                  // of racks in which there are leases
};

// A server's leases, for its front. Thread-safe; never blocks.
class LeaseDesk {
 public:
  virtual ~LeaseDesk() = default;

  // The answer is given later unless it is already; a caller that does not wait for it loses
  // nothing but time.
  virtual std::shared_ptr<const LeaseAnswer> Call(LeaseCall call) = 0;

  // By number.
  virtual std::vector<LeaseShown> List() const = 0;
  virtual LeaseCounts counts() const = 0;
};

}  // namespace firn
