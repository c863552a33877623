#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_node.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// A tag's node as read, with everything that a write of it has to match.
struct StoredTag {
  TagNode node;
  NodeStat stat;
  int64_t meta_version = 0;
  Nonce era{};

  const TagDefinition& tag() const { return node.tag; }
};

// Whether the tag was retired (TagStore::Retire).
bool IsRetired(const TagNode& node);

// All tags of a cluster, and a sentence for each node that is not a tag.
struct TagListing {
  std::vector<StoredTag> tags;  // by node name
  std::vector<std::string> faults;
  std::vector<std::string> unreadable{};  // names of the tags among the faults
  std::vector<std::string> deleted{};     // names whose tags were deleted; not among `tags`
};

// The cluster's tags for commands: read, create, edit. Every write is one multi that also checks
// the root node's version and the era under which the tag was read, so that a write for one state
// of the cluster never takes effect in another.
//
// Owned by one thread. Create and Replace refuse while the cluster is frozen.
class TagStore {
 public:
  static constexpr int kEditTriesMax = 200;

  explicit TagStore(BlockingCoordinator& registry) : registry_(registry) {}

  Result<TagListing> ReadAll();

  // kNotFound, with the tag's name, also for a deleted tag.
  Result<StoredTag> Read(std::string_view name);

  // Creates a tag. kConflict if a tag of that name exists, disabled or not. In a cluster that was
  // restored after a loss, a tag with a ledger requires an explicit start: its node may have been
  // lost after numbers were issued. Unless the start is 1, ids count as issued, and their form is
  // fixed. kInvalid for numbers beyond LimitOf, and for an obfuscated tag that cannot hold the
  // layout's ids for a year (CheckObfuscatedEnd).
  Status Create(const TagDefinition& tag);

  // Replaces the tag as read by `after`, except for the ledger and members of later versions.
  // kInvalid if CheckEdit refuses, or if a dated tag would start in a future period;
  // kConflict if the node or the root node has changed since.
  Status Replace(const StoredTag& read, TagDefinition after);

  // Replace for an operator's edit, which does not depend on the ledger. Ledger writes change a
  // busy tag's node continually: if only the ledger has moved, re-reads and retries, at most
  // kEditTriesMax times.
  Status Edit(const StoredTag& read, const TagDefinition& after);

  // Deletes a tag of which no number was ever issued; its name can be used again. kInvalid if ids
  // may have been issued. If a server takes the first range at the same time, the versions order
  // the two writes, and the later one fails.
  Status Delete(std::string_view name);

  // Disables a tag, which may have issued ids, for good and marks it as retired. An edit that
  // enables it takes the mark away. Servers need not know the mark: it only hides the tag from
  // people.
  Status Retire(std::string_view name);

  // For `firn restore`, while the cluster is frozen under the root node as read, before ledgers are
  // lifted: gives an existing tag the form of `tag`, except for ledger and start. kConflict if ids
  // may have been issued in another form. `unissued`: none was, because the restore has made the
  // tag; its ledger becomes this.
  Status Reform(const TagDefinition& tag, const MetaAsRead& frozen,
                std::optional<int64_t> unissued = {});

  // Likewise: re-creates a tag whose node is missing or unreadable, as `tag` defines it, with the
  // members of later versions in `others`. An existing tag only has its ledger raised to `start` at
  // least.
  Status Remake(const TagDefinition& tag, const MetaAsRead& frozen, const std::string& others = {});

  // Raises the tag's ledger to `high`, after a loss of data or because another system has issued
  // numbers of the tag; never lowers it. For `firn restore` and `firn tags import` only. Works also
  // in a frozen cluster and without the era's node, which a restore both repairs. kConflict as with
  // Replace.
  Status Lift(const StoredTag& read, int64_t high);

 private:
  Result<StoredTag> ReadNode(std::string_view name, const MetaAsRead& meta);
  Result<StoredTag> ReadTag(std::string_view name, const MetaAsRead& meta);
  Status Put(const StoredTag& read, TagDefinition after);
  Status Disable(std::string_view name, std::string_view doing,
                 const std::function<Status(TagNode&)>& change);
  Status Overwrite(const StoredTag& read, const TagNode& node);
  Status Rewrite(const StoredTag& read, const TagNode& node);
  Status EnsureFolder();

  // Sends the multi {check(meta), writes that give `path` the data, optionally check(era)}. Reads
  // back after an unknown outcome: ok if the node then contains exactly these data.
  Status Send(std::vector<Write> writes, const std::string& path, const std::string& data);

  BlockingCoordinator& registry_;
};

}  // namespace firn
