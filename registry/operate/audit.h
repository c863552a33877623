#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/layout.h"
#include "common/id/urgency.h"
#include "common/tag/tag_definition.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/operate/restore_memory.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/seam/node_version.h"
#include "registry/servers/pace.h"
#include "registry/servers/provider.h"

namespace firn {

// A fact about a cluster that an operator should know. `firn audit`, `firn doctor` and the console
// show the same findings. A value.
struct AuditFinding {
  Urgency urgency = Urgency::kSoon;
  std::string what;      // a sentence that names its object
  std::string fix{};     // a command, or what to do; empty: no action, or `restore`
  bool restore = false;  // `firn restore` repairs it

  friend bool operator==(const AuditFinding&, const AuditFinding&) = default;
};

// The state of a slot.
enum class SlotUse {
  kNeverUsed,
  kHeld,        // live, and its bound is ahead
  kUnattended,  // not live, its bound is ahead: its holder is dead, or cut off and still issuing
  kPassed,      // its bound has passed
  kReleased,
  kRetired,
  kReserved,  // for another system
  kPoisoned,  // its bound is more than a day ahead
  kUnreadable,
};

std::string_view SlotUseName(SlotUse use);

// A server that has announced itself.
struct AuditedProvider {
  Provider provider;
  ProviderReport report;
};

// A server's recent rates, and how much older they are than the newest rates of any server.
struct AuditedPace {
  ServerPace pace;
  Milliseconds age{0};
};

// The outcome of a direct request to a server.
struct AskedServer {
  std::string address;
  Status heard;  // ok: the findings use its answer; otherwise why they use only its report
};

struct AuditedSlot {
  Slot slot;
  MachineId machine;
  SlotUse use = SlotUse::kUnreadable;
  SlotRecord record;  // empty if unreadable
  int64_t version = 0;
  std::optional<LiveMark> live{};
  bool left = false;                       // its holder left without giving it back, or is cut off
  std::optional<int64_t> clock_skew_ms{};  // as reported by the server that holds the machine id
  std::vector<PastHolder> past{};          // oldest first; read by ReadPast only

  bool rests_unguarded() const { return version == kUnguardedVersion; }
};

// The owner of a partition of tags with buffer = owner.
struct AuditedPartition {
  size_t partition = 0;
  std::vector<std::string> tags{};  // not empty
  std::string owner{};              // its address; empty: none, which is a finding if it lasts
  WallMs since{};                   // by the registry's clock
};

// A cluster as its registry shows it, and its findings. A value.
struct Audit {
  std::optional<ClusterMeta> meta{};
  int64_t meta_version = 0;
  WallMs meta_set_at{};  // by the registry's clock
  WallMs era_began{};    // likewise; 0: unknown
  ClusterSettings settings{};
  // Left in the frozen cluster by an unfinished restore.
  std::optional<RestoreMemory> unfinished{};
  std::map<std::string, int64_t> made{};  // tags that this restore created (MadeTags)
  std::vector<AuditedSlot> slots{};       // by rack and worker; only slots that exist
  std::vector<AuditedProvider> providers{};
  std::vector<AskedServer> asked{};            // empty: the audit called no server
  std::map<std::string, AuditedPace> paces{};  // by address; only ReadPaces fills it and the next
  std::optional<WallMs> paces_wanted_at{};     // start of the request for rates; empty: none
  std::vector<TagDefinition> tags{};           // by name
  std::vector<AuditedPartition> partitions{};  // those that have tags; none in a frozen cluster
  std::vector<AuditFinding> findings{};        // in the order of the reading
  // Tags that servers report and whose node is missing or unreadable, with the highest ledger that
  // a server has seen; 0: unknown.
  std::map<std::string, int64_t> lost_tags{};

  // Faults: the findings that require an action, one sentence each. Notes: all others.
  std::vector<std::string> Faults() const;
  std::vector<std::string> Notes() const;
  // Returns the number of losses of data that `firn restore` repairs. A tag that a server refuses
  // does not count: after a restore, the server's report may be older than the registry.
  size_t Losses() const;

  // Returns the begin of the era if earlier records of machine ids may be lost, otherwise 0.
  WallMs RecordsBegan() const;

  // Whether no slot was ever claimed.
  bool NeverUsed() const;

  // The number of machine ids of each rack.
  uint32_t workers() const;

  // The cluster's time when the registry's clock shows `registry`: claims decide by it.
  WallMs ClusterTimeAt(WallMs registry) const;

  // How far ids are ahead of the clocks since the last completed restore; see LeadOf.
  Milliseconds Lead() const;

  // The time that ids may have reached when the registry's clock shows `registry`. A bound more
  // than a day above it is an error.
  WallMs HighestTimeAt(WallMs registry) const;
};

// Sorts by urgency, keeping the order otherwise, and gives findings that a restore repairs that
// command as their fix; empty: only the servers know it. Pure.
std::vector<AuditFinding> ByUrgency(std::vector<AuditFinding> findings,
                                    const std::string& restore_command);

// Reads the whole tree after a sync. Unreadable nodes are faults, not failures; fails only if the
// registry does not answer. Bounds are compared with the cluster's time at `now`. Blocks.
//
// Reads node after node while servers continue; an apparent fault is read again before it counts.
//
// `ask`, if given, asks the servers directly: it returns the answer of each to GET /v1/status, or
// why there is none. The findings then include what only the servers know. May block.
using StatusSource =
    std::function<std::vector<Result<std::string>>(const std::vector<AuditedProvider>&)>;
Result<Audit> ReadAudit(BlockingCoordinator& registry, WallMs now, const StatusSource& ask = {});

// Likewise, but does not read the owners of tags, for which ReadAudit may sleep. For a restore,
// which does not need them.
Result<Audit> ReadAuditWithoutOwners(BlockingCoordinator& registry, WallMs now);

// Reads the past holders of each slot: one node for each slot that was ever used. Unreadable ones
// are left empty, since nothing depends on them. Fails if the registry does not answer.
// Blocks.
Status ReadPast(BlockingCoordinator& registry, Audit& audit);

// Asks the servers to publish their rates as long as the session lasts. Call it again before each
// ReadPaces: the request may be that of another session, which has ended. kNotFound: no server has
// ever announced itself. Blocks.
Status WantPaces(BlockingCoordinator& registry);

// Reads the rates that the announced servers have published since the request. A server that has
// not published yet, or whose version cannot, has none.
Status ReadPaces(BlockingCoordinator& registry, Audit& audit);

}  // namespace firn
