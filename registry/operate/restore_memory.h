#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/cluster/records.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// What a restore that is not complete leaves in the frozen registry, for the run that repeats it.
// It is memory, not a list of steps: each run does everything again. A value.
struct RestoreMemory {
  // A file that the restore used.
  struct Document {
    std::string path;      // on the host of the command
    std::string checksum;  // the same document may have another path
    WallMs taken{};

    friend bool operator==(const Document&, const Document&) = default;
  };

  std::string replaced{};  // the unused cluster whose tags and records are here; empty: none
  bool erased = false;     // its tags are gone: the present ones are of this restore
  std::vector<Document> documents{};
  // Of the command, word for word: `--retire=5`, `order=5001,step=50`.
  std::vector<std::string> flags{}, tags{};
  std::string unstored{};  // digest of flags and tags that are too long for the node

  bool empty() const {
    return replaced.empty() && documents.empty() && flags.empty() && tags.empty();
  }
  bool Knows(const std::string& checksum) const;
  // Of flags and tags.
  std::string Digest() const;

  // Adds what an earlier run of the same restore has left. Numbers and lists only grow; of other
  // values that both have, and of the forms of a tag, these stay.
  void Join(const RestoreMemory& earlier);
  // Whether Join would add a flag or a tag, or raise one.
  bool Lacks(const RestoreMemory& earlier) const;
  // Whether Lacks is true, or the earlier run used a document that this one does not know.
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

}  // namespace firn
