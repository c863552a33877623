#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/id/layout.h"
#include "common/time/entropy.h"
#include "registry/cluster/nonce.h"
#include "tests/sim/leases/lease_mutants.h"
#include "tests/sim/leases/lease_oracle.h"
#include "tests/sim/leases/lease_twins.h"
#include "tests/sim/sim_clock.h"
#include "tests/support/registry/faults.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// State that all parts of a world share. Owned by the world.
struct LeaseShared {
  VirtualClock& clock;  // the true time
  HostClock& registry_clock;
  MemoryTree& tree;
  LeaseOracle& oracle;
  LeaseTwins& twins;
  SeededEntropy& dice;
  LeaseMutant mutant = LeaseMutant::kNone;
  bool trace = false;
  bool copies = false;  // programs are copied while they run
  bool copies_servers = false;
  bool generations = false;  // a copied server detects that its machine is a copy
  Milliseconds route{};  // time for which requests to an address reach the same copy of a server
  std::set<std::string> copied{};  // addresses of servers that were copied
  int machines = 0;                // number of machines that may run servers
  Layout layout = Layout::Firn();
  Milliseconds window{};
  FaultRates rates{};  // of the registry
  std::map<std::string_view, int64_t> counts{};
  std::vector<std::pair<int64_t, BootMs>> expiring{};  // sessions, and when they end
  bool has_lost = false;                               // the registry lost data at some time
  bool gap = false;                                    // the registry has not been restored since
  // Address of the server that starts first on a registry that was replaced by an older one.
  std::string first_reader{};
  // The last write to each slot's path, even if the registry has lost it.
  struct LastWrite {
    Nonce nonce;
    std::string server;  // address
  };
  std::map<std::string, LastWrite> last_writes{};
  std::map<std::string, WallMs> highest{};  // the highest bound ever, by the slot's path
  // The latest claim of each slot after a loss of data and before a freeze or restore.
  struct GapClaim {
    Nonce nonce;
    WallMs since;
    BootMs at;
  };
  std::map<std::string, GapClaim> gap_claims{};
  Milliseconds skew{0};  // how far a holder's id clock has ever been ahead; alarms report it
  int64_t named = 0;     // number of processes and claims so far

  void Count(std::string_view what) { ++counts[what]; }
  void Trace(const std::string& what) const;
  // A registry ends a session some time after its timeout.
  void ExpireLater(int64_t session);

  bool OneIn(uint64_t n) const { return dice.Below(n) == 0; }
  Milliseconds UpTo(int64_t ms) const {
    return Milliseconds(static_cast<int64_t>(dice.Below(static_cast<uint64_t>(ms) + 1)));
  }
};

}  // namespace firn
