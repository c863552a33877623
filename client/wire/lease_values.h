#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"

namespace firn::wire {
class LeaseAsk;
class LeaseRenewal;
class LeaseEnd;
class LeaseTerms;
class LeaseRefusal;
}  // namespace firn::wire

namespace firn::client {

// A request about a lease of a machine id. Each method has its own fields; others are ignored.
struct LeaseAsk {
  // kLease. The same token gets the same lease.
  std::string token{};
  std::string name{};
  std::optional<uint32_t> rack{};

  // kRenewLease and kReleaseLease
  std::string lease{};
  std::string turn{};          // of this renewal; kReleaseLease: the last one sent, or empty
  std::string acknowledged{};  // kRenewLease: turn of the last answer, or empty
  std::optional<Tick> used{};  // kReleaseLease: the highest tick used; empty: unknown

  // kLease and kRenewLease
  std::optional<Milliseconds> ahead{};  // empty: as usual for the server
  WallMs clock{};

  // Not sent: the servers that the request may use.
  std::string only_server{};                // empty: any
  std::vector<std::string> last_servers{};  // used if no other server is left
};

// The terms of a lease as a server sent them. They are not checked.
struct LeaseTerms {
  std::string lease{};
  int64_t number = 0;
  int32_t machine = 0, worker = 0, rack = 0;
  int64_t base_bits = 0;
  int32_t tick_shift = 0, sequence_shift = 0, sequence_bits = 0;
  int64_t sequence_from = 0, sequence_count = 0;
  int32_t tick_ms = 0;
  WallMs epoch{};
  Tick from{}, until{};
  Milliseconds renew_in{0};
  bool ending = false;
  std::string server{};
};

enum class LeaseFault : uint8_t {
  kOther,  // of a later version of the contract
  kUnknownLease,
  kOutdated,
  kRevoked,
  kAnotherServers,
  kNoLeases,
  kClaiming  // NOT_READY, and no other server may help: repeat the request at this one
};

struct LeaseRefusal {
  LeaseFault fault = LeaseFault::kOther;
  std::string message{};        // printable
  std::string server{};         // of kAnotherServers
  Milliseconds retry_after{0};  // of kClaiming
};

// The answer to a LeaseAsk: terms, a refusal, or neither if the lease was released.
struct LeaseReply {
  std::optional<LeaseTerms> terms{};
  std::optional<LeaseRefusal> refusal{};
};

// Converts to and from the wire contract's types. Pure functions.
wire::LeaseAsk AskToWire(const LeaseAsk& ask);
wire::LeaseRenewal RenewalToWire(const LeaseAsk& ask);
wire::LeaseEnd EndToWire(const LeaseAsk& ask);
LeaseTerms FromWire(const wire::LeaseTerms& terms);
LeaseRefusal FromWire(const wire::LeaseRefusal& refusal);

}  // namespace firn::client
