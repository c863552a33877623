#pragma once

#include <cstdint>
#include <string>
#include <variant>

#include "client/fleet/health.h"
#include "client/fleet/spell.h"
#include "common/time/entropy.h"
#include "common/time/micros.h"

namespace firn::client {

// How one server stands with its cluster: one of four states. The table says what each event makes
// of each state:
//
//                   | Member      | Draining    | Quarantined | Stranger
//   ----------------+-------------+-------------+-------------+-----------
//   kListed         | Member      | Member      | Member      | Member
//   kGivesIds       | Member      | Member      | Quarantined | Stranger
//   kSaysDraining   | Draining    | Draining    | Quarantined | Stranger
//   kSpeaksNonsense | Quarantined | Quarantined | Quarantined | Stranger
//   kIsStrange      | Stranger    | Stranger    | Stranger    | Stranger
//   kSeenStaying    | Member      | Member      | Member *    | Member *
//   kSeenDraining   | Draining    | Draining    | Draining *  | Draining *
//
//   * if the look was meant for that; no other look ends a quarantine
//
// A draining server that issues ids has restarted, or drains no longer. Its answer may also be
// older than its refusal, and from another connection: then it refuses one more call.
//
// Whoever is no member is looked at in the background, so that nobody is out for good: at once
// where only the refusal of a call says that it drains, after kRecheck where its status says so,
// and after ever longer times otherwise. A look that is lost (kNotSeen) changes nothing but that
// there is a next one. Whether it answers is another matter, and Health's: one that is out may be
// draining as well. A value, thread-compatible.
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
  struct Stranger {
    Look look{};
  };
  using Standing = std::variant<Member, Draining, Quarantined, Stranger>;

  enum class Event : uint8_t {
    kListed,          // a new list has it
    kGivesIds,        // in answer to a call
    kSaysDraining,    // it refused a call so
    kSpeaksNonsense,  // in answer to a call
    kIsStrange,       // it is not an IdService of this cluster
    kSeenStaying,     // its status was asked for in the background
    kSeenDraining,
    kNotSeen
  };

  // The table. `look_at`: when whoever is no member then is looked at.
  static Standing After(const Standing& from, Event event, Micros look_at);

  // True when it stands otherwise than before.
  bool Hear(Event event, Micros now, Entropy& entropy);

  // Whether to ask for its status now; true once on each occasion, and whoever is told so reports
  // what came of it.
  bool TakeLook(Micros now);

  bool member() const { return std::holds_alternative<Member>(standing_); }
  bool draining() const { return std::holds_alternative<Draining>(standing_); }
  bool quarantined() const { return std::holds_alternative<Quarantined>(standing_); }
  bool strange() const { return std::holds_alternative<Stranger>(standing_); }

  Health health{};
  std::string why{};  // it is not fit, in a sentence

 private:
  static Look* LookOf(Standing& standing);
  Micros NextLook(Event event, Micros now, Entropy& entropy);

  Standing standing_{};
  Spell quarantine_{kRecheck, kQuarantineMax};
  Spell unseen_{Micros(1'000'000), kRecheck};
};

}  // namespace firn::client
