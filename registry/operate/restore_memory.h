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

// What a restore that is not complete leaves in the frozen registry, for the run that repeats it.
// It is memory, not a list of steps: each run does everything again. A value.
struct RestoreMemory {
  // A file or folder that the restore used.
  struct Document {
    std::string path;
    std::string checksum;  // Backup::checksum: the same document may have another path
    WallMs taken{};

    friend bool operator==(const Document&, const Document&) = default;
  };

  std::string replaced{};  // the unused cluster whose tags and records are here; empty: none
  std::vector<Document> documents{};
  std::string host{};                // the machine whose paths those are
  std::vector<std::string> flags{};  // of the command: `--skew_max_ms=5`, `--set=retire=5`
  std::string plan{};                // names the restore, in nodes that it has changed, too

  // An earlier version, which took arguments, has left it: it has no plan.
  bool IsOutdated() const { return plan.empty(); }
  // Whether the documents contain this one, as it was then or later.
  bool Knows(const Document& document) const;
  // Returns those of `--set` among the flags, without that word.
  std::vector<std::string> Answers() const;

  // Adds what an earlier run of the same restore has left. Numbers and lists only grow; of other
  // values that both have these stay, except the plan. A tag's definition replaces the earlier one
  // as a whole.
  void Join(const RestoreMemory& earlier);
  // Whether Join would add a flag, or raise one.
  bool Lacks(const RestoreMemory& earlier) const;
  // Whether Lacks is true, or the earlier run used a document that this one does not know, or had
  // an earlier version.
  bool Overlooks(const RestoreMemory& earlier) const;

  friend bool operator==(const RestoreMemory&, const RestoreMemory&) = default;
};

inline constexpr const char* kRestorePath = "/restore";
inline constexpr size_t kRestoreBytesMax = 64 << 10;

// The node's text. It names the era that the run has drawn: an older `firn restore` draws another
// era and knows no such node, so what it left out is not taken for done.
std::string FormatRestoreMemory(const RestoreMemory& memory, const Nonce& era);

struct RestoreMemoryAsRead {
  std::optional<RestoreMemory> memory{};  // empty: none that counts under this root node
  bool exists = false;                    // the node, whether it counts or not
  int64_t version = 0;                    // of the node
};
Result<RestoreMemoryAsRead> ReadRestoreMemory(BlockingCoordinator& registry,
                                              const ClusterMeta& root);

// Returns the tags that the unfinished restore `plan` has made, for a run that repeats it, with the
// ledger that was known of each before: a member of the tags' nodes.
std::map<std::string, int64_t> MadeTags(const TagListing& listing, const std::string& plan);
// Returns a node's other members with that one; as they are if there is no plan.
std::string WithMade(const std::string& others, const std::string& plan, int64_t known);

}  // namespace firn
