#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/records.h"
#include "registry/cluster/tag_store.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// The memory of an unfinished restore, stored in the frozen registry for the next run. It contains
// no steps: each run does everything again. A value.
struct RestoreMemory {
  // A file or folder that the restore used.
  struct Document {
    std::string path;
    std::string checksum;  // Backup::checksum: the same document may have another path
    WallMs taken{};

    friend bool operator==(const Document&, const Document&) = default;
  };

  std::string replaced{};  // uuid of the unused cluster that the restore replaces; empty: none
  std::vector<Document> documents{};
  std::string host{};                // the machine that has the documents
  std::vector<std::string> flags{};  // of the command: `--skew_max_ms=5`, `--set=retire=5`
  std::string plan{};                // identifies the restore, also in the tags that it has made
  Milliseconds lead{};               // of the eras before; see LeadOf

  // Returns whether the documents contain this one, in the same or a later state.
  bool Knows(const Document& document) const;
  // Returns the values of `--set` in the flags.
  std::vector<std::string> Answers() const;

  // Merges the memory of an earlier run. Numbers rise and lists grow; this run's other values stay,
  // except the plan. Its definition of a tag replaces the earlier one as a whole.
  void Join(const RestoreMemory& earlier);
  // Returns whether Join would add or raise a flag.
  bool Lacks(const RestoreMemory& earlier) const;
  // Returns whether Lacks is true, or a document of the earlier run is unknown.
  bool Overlooks(const RestoreMemory& earlier) const;

  friend bool operator==(const RestoreMemory&, const RestoreMemory&) = default;
};

// Returns how far ids are ahead of the clocks in an era that began under this floor, at this time
// of the registry's clock. Zero if they are not ahead, if the time is not known, or if it must be
// of a wrong clock, because the lead would be more than a year: a restore adds at most three claim
// windows, and answers at most a month in all.
Milliseconds LeadOf(WallMs floor, WallMs began);

inline constexpr const char* kRestorePath = "/restore";
inline constexpr size_t kRestoreBytesMax = 64 << 10;

// Returns the node's text. It names the era of the run, and counts in this era only.
std::string FormatRestoreMemory(const RestoreMemory& memory, const Nonce& era);

struct RestoreMemoryAsRead {
  std::optional<RestoreMemory> memory{};  // empty: none, or of another era
  bool exists = false;                    // the node exists
  int64_t version = 0;                    // of the node
};
Result<RestoreMemoryAsRead> ReadRestoreMemory(BlockingCoordinator& registry,
                                              const ClusterMeta& root);
// Likewise, from the node as read. Fails only if the registry did not answer.
Result<RestoreMemoryAsRead> RestoreMemoryIn(const Result<Node>& node, const ClusterMeta& root);

// Returns the tags that the unfinished restore `plan` has made, each with the ledger that was known
// before: a member of the tags' nodes.
std::map<std::string, int64_t> MadeTags(const TagListing& listing, const std::string& plan);
// Returns a tag node's other members with that member. Without a plan, returns them unchanged.
std::string WithMade(const std::string& others, const std::string& plan, int64_t known);
// Returns a tag node's other members without that member.
std::string WithoutMade(const std::string& others);

}  // namespace firn
