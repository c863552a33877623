#pragma once

#include <cstdint>

#include "client/fleet/probe.h"
#include "client/fleet/server_backoff.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// Whether one server belongs to the cluster and serves it, as one of four states. The table shows
// the state after each event:
//
//                   | Member      | Draining    | Quarantined | Foreign
//   ----------------+-------------+-------------+-------------+-----------
//   kListed         | Member      | Member      | Member      | Member
//   kGivesIds       | Member      | Member      | Quarantined | Foreign
//   kSaysDraining   | Draining    | Draining    | Quarantined | Foreign
//   kBreaksProtocol | Quarantined | Quarantined | Quarantined | Foreign
//   kIsForeign      | Foreign     | Foreign     | Foreign     | Foreign
//   kSeenStaying    | Member      | Member      | Member *    | Member *
//   kSeenDraining   | Draining    | Draining    | Draining *  | Draining *
//
//   * if the probe was due for that state; another probe does not end a quarantine
//
// A draining server that issues ids has restarted, or no longer drains. Its answer may also be
// older than its refusal, from another connection: then it refuses one more call.
//
// Every server that is not a member is probed in the background, so none is lost permanently: at
// once if only a refused call said that it drains, after kRecheck if its status says so, and with
// backoff otherwise. A failed probe (kNotSeen) only schedules the next one. Health decides
// independently whether a server responds: an ejected server may be draining as well.
// Server::Standing combines both. A value, thread-compatible.
class Membership {
 public:
  static constexpr Micros kRecheck{30'000'000};
  static constexpr Micros kQuarantineMax{300'000'000};

  enum class Kind : uint8_t { kMember, kDraining, kQuarantined, kForeign };
  struct State {
    Kind kind = Kind::kMember;
    Probe probe{};  // unused for a member
  };

  enum class Event : uint8_t {
    kListed,          // a new list contains the server
    kGivesIds,        // it answered a call with ids
    kSaysDraining,    // it refused a call with DRAINING
    kBreaksProtocol,  // its answer to a call violates the protocol
    kIsForeign,       // it is not an IdService of this cluster
    kSeenStaying,     // results of a probe
    kSeenDraining,
    kNotSeen
  };

  // The table. `probe_at`: time of the next probe of a server that is not a member.
  static State After(const State& from, Event event, Micros probe_at);

  // Applies an event. Returns true if the state has changed.
  bool Hear(Event event, Micros now, Entropy& entropy);

  // Returns true once when a probe of a non-member is due. The caller must then probe it and report
  // the result.
  bool TakeProbe(Micros now) { return !member() && state_.probe.Take(now); }

  bool member() const { return state_.kind == Kind::kMember; }
  bool draining() const { return state_.kind == Kind::kDraining; }
  bool quarantined() const { return state_.kind == Kind::kQuarantined; }
  bool foreign() const { return state_.kind == Kind::kForeign; }

 private:
  Micros NextProbe(Event event, Micros now, Entropy& entropy);

  State state_{};
  ServerBackoff quarantine_{kRecheck, kQuarantineMax};
  ServerBackoff probe_backoff_{Micros(1'000'000), kRecheck};
};

}  // namespace firn::client
