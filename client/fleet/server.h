#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "client/fleet/address_book.h"
#include "client/fleet/health.h"
#include "client/fleet/membership.h"
#include "client/fleet/peak_ewma.h"
#include "client/fleet/tag_limits.h"
#include "client/server_source.h"
#include "common/net/address.h"
#include "common/net/endpoint.h"
#include "common/time/micros.h"

namespace firn::client {

// A client's state of one server. Created and changed by the Fleet; calls that use it keep it
// alive, even after it has left the list.
struct Server {
  Server(uint64_t its_number, std::string its_name, Endpoint its_endpoint)
      : number(its_number), name(std::move(its_name)), endpoint(std::move(its_endpoint)) {}

  // Returns its standing for calls of any tag. Requires the fleet's mutex, like the next three
  // functions.
  ServerHealth Standing() const;
  bool healthy() const { return Standing() == ServerHealth::kHealthy; }
  // Returns true once when a probe is due. The caller must then probe it and report the result.
  bool TakeProbe(Micros now) {
    return membership.member() ? health.TakeProbe(now) : membership.TakeProbe(now);
  }

  // Returns whether rules 5 and 6 of the Fleet count the server when they compare with half of all.
  bool counts() const { return !known.disabled && !membership.foreign(); }

  const uint64_t number;   // never reused for another server
  const std::string name;  // its address in the list
  const Endpoint endpoint;

  // Read or changed by every call, without a lock.
  TagLimits limits{};
  PeakEwma latency{};
  std::atomic<int> in_flight = 0;
  std::atomic<uint64_t> answered = 0, failed = 0;
  std::atomic<Micros> last_answer{Micros(0)};  // the last answer with ids
  std::atomic<bool> listed = true;             // false: it is not in the current list
  std::atomic<bool> tls = false;               // whether the next connection uses TLS
  std::atomic<bool> spoke_plainly = false;     // it answered on the last connection, without TLS
  std::atomic<Micros> connect_at{Micros(0)};  // earliest time at which a call may open a connection
  // Healthy and not draining, so an answer changes nothing. Written under the fleet's mutex.
  std::atomic<bool> well = false;

  // The rest is under the fleet's mutex.
  KnownServer known{};
  AddressBook addresses{};  // empty: its name is not resolved yet
  bool reached = true;      // false: the last connection could not be opened
  // The earliest and the latest time of the next lookup of its name.
  Micros resolve_at{0}, resolve_by{0};
  Micros first_seen{0};
  double lot = 0;    // divided by its weight, determines the subset (subset.h)
  bool kept = true;  // in the client's subset
  bool near =
      true;  // kept, or among the kHealthyMin servers that a call may need: its name is resolved
  ServerBackoff dialling{Micros(10'000), Micros(100'000)};  // after a failed connection
  Membership membership{};
  Health health{};
  std::string why{};                         // why it is not healthy, in a sentence
  Micros moves_until{0}, moves_again_at{0};  // calls are moved off it, see Fleet::MayMove
};

using ServerPtr = std::shared_ptr<Server>;

}  // namespace firn::client
