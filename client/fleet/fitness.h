#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "client/fleet/health.h"
#include "client/fleet/spell.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// The standing of one server in its cluster: one of four states. The table shows the state after
// each event:
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
// older than its refusal, and from another connection: then it refuses one more call.
//
// Every server that is not a member is probed in the background, so none is lost for good: at once
// if only a refused call says that it drains, after kRecheck if its status says so, and after
// growing times otherwise. A failed probe (kNotSeen) only schedules the next one. Whether a server
// responds is decided by Health, independently: an ejected server may be draining as well.
// A value, thread-compatible.
class Fitness {
 public:
  static constexpr Micros kRecheck{30'000'000};
  static constexpr Micros kQuarantineMax{300'000'000};

  struct Look {
    Micros at{0};
    bool under_way = false;
  };
  struct Member {};
  struct Draining {
    Look look{};
  };
  struct Quarantined {
    Look look{};
  };
  struct Foreign {
    Look look{};
  };
  using Standing = std::variant<Member, Draining, Quarantined, Foreign>;

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

  // The table. `look_at`: time of the next probe of a server that is not a member.
  static Standing After(const Standing& from, Event event, Micros look_at);

  // Applies an event. Returns true if the standing has changed.
  bool Hear(Event event, Micros now, Entropy& entropy);

  // Returns true once when a probe is due. The caller must then probe the server and report the
  // result.
  bool TakeLook(Micros now);

  bool member() const { return std::holds_alternative<Member>(standing_); }
  bool draining() const { return std::holds_alternative<Draining>(standing_); }
  bool quarantined() const { return std::holds_alternative<Quarantined>(standing_); }
  bool foreign() const { return std::holds_alternative<Foreign>(standing_); }

  Health health{};
  std::string why{};  // why it is not healthy, in a sentence

 private:
  static Look* LookOf(Standing& standing);
  Micros NextLook(Event event, Micros now, Entropy& entropy);

  Standing standing_{};
  Spell quarantine_{kRecheck, kQuarantineMax};
  Spell unseen_{Micros(1'000'000), kRecheck};
};

}  // namespace firn::client
