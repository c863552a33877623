#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "client/fleet/address_book.h"
#include "client/fleet/fitness.h"
#include "client/fleet/peak_ewma.h"
#include "client/fleet/tag_limits.h"
#include "client/server_source.h"
#include "common/net/address.h"
#include "common/net/endpoint.h"
#include "common/time/micros.h"

namespace firn::client {

// One server as a client knows it. Made and changed by the Fleet; kept alive by whoever has a call
// at it, also after it has left the list.
struct Server {
  Server(uint64_t its_number, std::string its_name, Endpoint its_endpoint)
      : number(its_number), name(std::move(its_name)), endpoint(std::move(its_endpoint)) {}

  // What keeps a call of any tag from asking it; the fleet's mutex is held.
  ServerFitness Standing() const;

  const uint64_t number;   // never used again for another one
  const std::string name;  // its address as the list has it
  const Endpoint endpoint;

  // What every call looks at or changes, without a lock.
  TagLimits limits{};
  PeakEwma latency{};
  std::atomic<int> in_flight = 0;
  std::atomic<uint64_t> answered = 0, failed = 0;
  std::atomic<Micros> last_answer{Micros(0)};  // with what was asked for
  std::atomic<bool> listed = true;             // false: it has left the list
  std::atomic<bool> tls = false;               // how it is spoken to, from the next connection on
  std::atomic<Micros> connect_at{Micros(0)};   // sooner no connection is begun for a call
  // An answer changes nothing: healthy, and not draining. Written under the fleet's mutex.
  std::atomic<bool> well = false;

  // The rest is under the fleet's mutex.
  KnownServer known{};
  AddressBook addresses{};  // empty: its name was not looked up yet
  bool reached = true;      // false: the last connection could not be opened
  // Its name is looked up: not before, and at the latest.
  Micros resolve_at{0}, resolve_by{0};
  Micros first_seen{0};
  double lot = 0;    // over its weight: whom the client keeps to (subset.h), or settles on
  bool kept = true;  // among those that the client keeps to
  Spell dialling{Micros(10'000), Micros(100'000)};  // after a connection that came to nothing
  Fitness fitness{};
  Micros moves_until{0}, moves_again_at{0};  // of calls that are moved off it, see Fleet::MayMove
};

using ServerPtr = std::shared_ptr<Server>;

}  // namespace firn::client
