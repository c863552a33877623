#pragma once

#include <cstdint>
#include <string>

#include "common/base/units.h"
#include "common/id/layout.h"

namespace firn {

// The terms of a lease: its holder may issue every id of `machine` with a tick in [from, until).
// Clients do not read number, worker and rack, which are for people.
struct LeaseGrant {
  std::string lease{};   // secret name of the lease; contains its server's address
  uint64_t number = 0;   // public; later processes of the server do not reuse it
  std::string server{};  // address of the server that granted it
  Layout layout = Layout::Firn();
  MachineId machine{};
  uint32_t worker = 0, rack = 0;  // of `machine`
  uint64_t base_bits = 0;         // machine id and constant fields, at their positions in an id
  uint64_t sequence_from = 0;
  uint64_t sequence_count = 0;
  Tick from{};
  Tick until{};
  Milliseconds renew_in{0};
  bool ending = false;  // the server extends the lease only up to a final bound
};

}  // namespace firn
