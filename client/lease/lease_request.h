#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"

namespace firn {

// What a server has promised: every id of `machine` with a tick in [from, until).
struct LeaseGrant {
  std::string lease{};   // secret name of the lease
  std::string server{};  // address of the server that granted it
  Layout layout = Layout::Firn();
  MachineId machine{};
  uint64_t base_bits = 0;  // machine id and const fields, in place
  uint64_t sequence_from = 0;
  uint64_t sequence_count = 0;
  Tick from{};
  Tick until{};
  Milliseconds renew_in{0};
  bool ending = false;  // the server extends it up to a final bound
};

// Returns kInvalid, with the reason, for terms under which no id may be issued: bits of another
// field, a part of a sequence, ticks that the layout does not have.
Status CheckTerms(const LeaseGrant& terms);

// A request to a server, without its transport.
struct LeaseRequest {
  enum class Kind : uint8_t {
    kGrant,   // a lease for `token`; the same token gets the same lease
    kRenew,   // a later end for `lease`
    kRelease  // the end of `lease`, whose generator is closed
  };
  Kind kind = Kind::kGrant;
  WallMs clock{};  // the wall clock, when the request is sent

  // kGrant
  std::string token{};
  std::string name{};
  std::optional<uint32_t> rack{};
  std::string avoid{};  // address of a server that is to be asked last; empty: none
  // kGrant and kRenew
  Milliseconds ahead{0};  // desired distance of `until`

  // kRenew and kRelease: the lease, and what its lessee has received. A server that remembers
  // something else has another lessee, a copy of this one.
  std::string lease{};
  std::string server{};        // its address
  std::string turn{};          // of this renewal; kRelease: the last one that may be accepted
  std::string acknowledged{};  // turn of the last answer; empty: that of the grant
  Tick until{};                // end in that answer; not sent, for servers do not compare it yet

  // kRelease
  Tick used{};  // the last tick of which an id was issued, or the one before the lease's first
};

// The outcome of a LeaseRequest.
struct LeaseOutcome {
  enum class Kind : uint8_t {
    kTerms,        // kGrant, kRenew: `terms`
    kReleased,     // kRelease
    kGone,         // 410: the lessee must stop, because another process may have its ids
    kOutdated,     // 409: the server has accepted a later turn: it was another process's
    kUnknown,      // 404 of the lease's own server: no extension, but the promise stands
    kNotExtended,  // kRenew: this server extends no leases any more, but the promise stands
    kUnusable,  // kGrant: terms of which only `lease`, `server` and `from` are set; `status`: why
    kRefused,   // nothing was done
    kNoAnswer   // it may have been done
  };
  Kind kind = Kind::kNoAnswer;
  LeaseGrant terms{};
  std::optional<WallMs> end{};  // kUnusable: the interval's end, if the terms state one
  Status status{};              // why; may be ok if that is unknown
  bool for_good = false;        // kRefused: the server refuses every repetition
  std::optional<Milliseconds> retry_in{};
};

}  // namespace firn
