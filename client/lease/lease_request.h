#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/lease_grant.h"

namespace firn {

// Returns kInvalid, with the reason, for terms under which no id may be issued: `base_bits` outside
// their fields, only a part of the sequence, or ticks that the layout does not have.
Status CheckTerms(const LeaseGrant& terms);

// A request to a server, without its transport.
struct LeaseRequest {
  enum class Kind : uint8_t {
    kGrant,   // requests a lease for `token`; the same token gets the same lease
    kRenew,   // extends `lease`
    kRelease  // ends `lease`, whose ids are closed
  };
  Kind kind = Kind::kGrant;
  WallMs clock{};  // the wall clock, when the request is sent

  // kGrant
  std::string token{};
  std::string name{};
  std::optional<uint32_t> rack{};
  std::string avoid{};  // address of the server to try last; empty: none
  // kGrant and kRenew
  Milliseconds ahead{0};  // desired distance of `until`

  // kRenew and kRelease: the lease, and the last answer that its lessee has received. If that
  // differs from the server's record, a copy of the lessee has renewed the lease.
  std::string lease{};
  std::string server{};        // address of the lease's server
  std::string turn{};          // of this renewal; kRelease: the last one that may be accepted
  std::string acknowledged{};  // turn of the last answer; empty: the grant
  Tick until{};                // end in that answer; not sent, since servers do not compare it yet

  // kRelease
  // The last tick with an issued id, or the tick before the lease's first; absent: unknown.
  std::optional<Tick> used{};
};

// The outcome of a LeaseRequest.
struct LeaseOutcome {
  enum class Kind : uint8_t {
    kTerms,        // kGrant, kRenew: `terms`
    kReleased,     // kRelease
    kGone,         // 410: the lessee must stop, because another process may use its ids
    kOutdated,     // 409: the server has accepted a later turn, from another process
    kUnknown,      // 404 from the lease's server: no extension; the lease is valid until its end
    kNotExtended,  // kRenew: the server no longer extends leases; this one is valid until its end
    kUnusable,     // kGrant: invalid terms; only `lease`, `server` and `from` of `terms` are set
    kRefused,      // the server did nothing
    kNoAnswer,     // the server may have done it
    kElsewhere     // 421: of `terms.server`. Only for transports, which send the request there
  };
  Kind kind = Kind::kNoAnswer;
  LeaseGrant terms{};
  std::optional<WallMs> end{};  // kUnusable: the interval's end, if it is known
  Status status{};              // the reason; may be ok if it is unknown
  bool for_good = false;        // kRefused: retries will be refused, too
  bool claiming = false;        // kRefused: the server is claiming a machine id for the token
  std::optional<Milliseconds> retry_in{};
};

}  // namespace firn
