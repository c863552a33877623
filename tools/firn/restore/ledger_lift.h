#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "registry/operate/backup.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/servers/provider.h"
#include "tools/firn/output.h"

namespace firn {

// Lifts the ledgers of segment tags after the registry lost data. Every used number lies less than
// one range above the highest reported ledger: a server knows its own writes, and those of others
// through its watch. A write that no running server reports was still in flight, and such a write
// moves the ledger by at most step_max. The minimum gap is twice that.
//
// Sharp edge: if no server reports a tag, any number of ranges may have been taken since the
// registry's present state, and since a backup. No gap is proven to suffice; the output names such
// a tag.

// What is known of the numbers of tags besides the registry.
struct LedgerFacts {
  std::vector<ProviderReport> reports{};  // of running servers, and of the operator (--tag_high)
  std::optional<Backup> backup{};         // its ledgers are lower bounds
  bool replaced = false;  // the registry's tags are those of a new cluster, made by mistake
  int64_t wanted_gap = 0;
};

// Returns the highest ledger of the tag that the reports name, or nullopt if none does. A report
// without room for every tag gives one value for all others: the highest ledger among them.
std::optional<int64_t> ReportedOf(const std::string& tag,
                                  const std::vector<ProviderReport>& reports);

// The same, or the backup's ledger if that is higher.
std::optional<int64_t> KnownOf(const std::string& tag, const LedgerFacts& facts);

// Returns the ledger that an existing tag gets: above its own, its start and all that is known, by
// the gap.
int64_t LiftedTo(const TagDefinition& tag, const LedgerFacts& facts, WallMs now);

// Lifts every segment tag's ledger so. Adds a line for each tag to the output, and a warning for a
// tag that no server reports. Leaves no tag's node at a version that cannot be guarded
// (node_version.h). Call it only while the cluster is frozen, or no server takes ranges. Fails on
// the first tag that cannot be written; the call may be repeated.
Status LiftLedgers(BlockingCoordinator& registry, const LedgerFacts& facts, Output& output);

}  // namespace firn
