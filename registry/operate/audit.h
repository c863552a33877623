#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/tag/tag_definition.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/seam/node_version.h"
#include "registry/servers/pace.h"
#include "registry/servers/provider.h"

namespace firn {

// A cluster as its registry shows it, and everything that is wrong with it, in words. A value, so
// that a command can print it and a test can compare it.

// How a slot stands.
enum class SlotUse {
  kNeverUsed,
  kHeld,        // live, and its bound lies ahead
  kUnattended,  // not live, its bound lies ahead: its holder is gone, or cut off and still issuing
  kPassed,      // its bound has passed
  kReleased,
  kRetired,
  kReserved,  // for another system
  kPoisoned,  // its bound lies more than a day ahead
  kUnreadable,
};

std::string_view SlotUseName(SlotUse use);

// A server that has announced itself.
struct AuditedProvider {
  Provider provider;
  ProviderReport report;
};

// What a server has done of late, and how long before the newest of all such words it said so.
struct AuditedPace {
  ServerPace pace;
  Milliseconds age{0};
};

struct AuditedSlot {
  Slot slot;
  MachineId machine;
  SlotUse use = SlotUse::kUnreadable;
  SlotRecord record;  // empty when unreadable
  int64_t version = 0;
  std::optional<LiveMark> live{};
  std::optional<int64_t> clock_skew_ms{};  // as the server that has this machine id reports it
  std::vector<PastHolder> past{};          // oldest first; read by ReadPast only

  bool rests_unguarded() const { return version == kUnguardedVersion; }
};

struct Audit {
  std::optional<ClusterMeta> meta{};
  int64_t meta_version = 0;
  WallMs meta_set_at{};              // by the registry's clock
  std::vector<AuditedSlot> slots{};  // by rack and worker; only what the tree holds
  std::vector<AuditedProvider> providers{};
  std::map<std::string, AuditedPace> paces{};  // by address; read by ReadPaces only, as the next
  std::optional<WallMs> paces_wanted_at{};     // since when servers say it; empty: nobody asks
  std::vector<TagDefinition> tags{};           // by name
  std::vector<std::string> faults{};           // a sentence each; empty: nothing is wrong
  std::vector<std::string> notes{};            // what one should know and nobody need mend
  size_t losses = 0;  // of the faults: those that `firn restore` puts right
  // Tags that servers report and that have no node, or none that can be read, and how far servers
  // have seen each; 0: nobody says.
  std::map<std::string, int64_t> lost_tags{};

  // Whether no claim of these data was ever made.
  bool NeverUsed() const;
};

// Reads the whole tree as it is after a sync. Nodes that cannot be read are faults, not failures;
// fails only when the registry does not answer. `now` decides what lies ahead. Blocks.
//
// Reads node after node while servers go on; what looks wrong is read once more before it counts.
Result<Audit> ReadAudit(BlockingCoordinator& registry, WallMs now);

// Reads who held each slot before its holder of now: a node for each slot that was ever used. What
// cannot be read is left empty, for nothing hangs on it. Fails when the registry does not answer.
// Blocks.
Status ReadPast(BlockingCoordinator& registry, Audit& audit);

// Asks the servers to say what they do, for as long as the session lasts. To be called again before
// each reading: the sign may be that of another session, which has ended. kNotFound: there has
// never been a server. Blocks.
Status WantPaces(BlockingCoordinator& registry);

// Likewise what each server that has announced itself has done of late, since it was asked. A
// server that has not said it yet, or is older than such words, has none.
Status ReadPaces(BlockingCoordinator& registry, Audit& audit);

}  // namespace firn
