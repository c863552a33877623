#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "client/client_view.h"
#include "client/fleet/health.h"
#include "client/server_source.h"
#include "common/time/micros.h"

namespace firn::client {

// Whether one server is to be asked. How it stands with its cluster is one of three states, and
// the table says what leads from each to which:
//
//               | kListed | kSaysDraining | kSpeaksNonsense | kSeenStaying | kSeenDraining
//   ------------+---------+---------------+-----------------+--------------+--------------
//   Member      | Member  | Draining      | Quarantined     | Member       | Draining
//   Draining    | Member  | Draining      | Quarantined     | Member       | Draining
//   Quarantined | Member  | Quarantined   | Quarantined     | Member *     | Draining *
//
//   * if the look was meant for that; no other look ends a quarantine
//
// Whether it answers is another matter, and Health's: one that rests may be on its way out as well.
// Beside both stands what it has said that it cannot do for a while. A value, thread-compatible.
class Fitness {
 public:
  // How soon those are looked at again that only a newer list would forgive, where none will come.
  static constexpr Micros kRecheck{30'000'000};

  struct Member {};
  struct Draining {
    Micros look_at{0};
    bool doubted = false;  // only the refusal of a call says so: its status is to be asked at once
  };
  struct Quarantined {
    Micros look_at{0};
    bool looked_at = false;  // to see whether it may come back
  };
  using Standing = std::variant<Member, Draining, Quarantined>;

  enum class Event : uint8_t {
    kListed,          // a new list has it
    kSaysDraining,    // it refused a call so
    kSpeaksNonsense,  // or is not of this cluster
    kSeenStaying,     // its status was asked for in the background
    kSeenDraining
  };

  // The table.
  static Standing After(const Standing& from, Event event, Micros now);

  // True when it stands otherwise than before.
  bool Hear(Event event, Micros now);

  // Another process answers at its address.
  void BeginAnew();

  // What it cannot do until then: anything that needs a machine id; anything for this tag, without
  // its store; anything for this tag, as it gives that up (until a new list, at the latest).
  void NotReady(Micros until) { not_ready_until_ = until; }
  void StoreDown(std::string_view tag, Micros until) { Remember(store_down_until_, tag, until); }
  void Closed(std::string_view tag, Micros until) { Remember(closed_until_, tag, until); }

  // Whether to ask for its status now; true once on each occasion.
  bool TakeLook(bool lists_change, Micros now);

  // For a call for `tag`, with what the list says of the server.
  ServerFitness For(std::string_view tag, bool needs_machine_id, const KnownServer& listed,
                    Micros now) const;

  bool draining() const { return std::holds_alternative<Draining>(standing_); }
  bool quarantined() const { return std::holds_alternative<Quarantined>(standing_); }

  Health health{};
  std::string why{};  // it is not fit, in a sentence

 private:
  using TagTimes = std::map<std::string, Micros, std::less<>>;

  static void Remember(TagTimes& times, std::string_view tag, Micros until);
  static bool IsBefore(const TagTimes& until, std::string_view tag, Micros now);

  Standing standing_{};
  Micros not_ready_until_{0};
  TagTimes store_down_until_{};
  TagTimes closed_until_{};
};

}  // namespace firn::client
