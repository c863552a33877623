#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_node.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// A tag's node as it was read, with everything that a write of it has to match.
struct StoredTag {
  TagNode node;
  NodeStat stat;
  int64_t meta_version = 0;
  Nonce era{};

  const TagDefinition& tag() const { return node.tag; }
};

// All tags of a cluster, and a sentence for each node that is not one.
struct TagListing {
  std::vector<StoredTag> tags;  // by node name
  std::vector<std::string> faults;
  std::vector<std::string> unreadable{};  // tags among them, by name
  std::vector<std::string> deleted{};     // names whose tags were deleted; not among `tags`
};

// The cluster's tags for commands: read, create, edit. Every write is one multi that also checks
// meta at the version, and the era, under which the tag was read, so that nothing written for one
// state of the cluster takes effect in another.
//
// Owned by one thread. Create and Replace refuse while the cluster is frozen.
class TagStore {
 public:
  static constexpr int kEditTriesMax = 200;

  explicit TagStore(BlockingCoordinator& registry) : registry_(registry) {}

  Result<TagListing> ReadAll();

  // kNotFound names the tag; one that was deleted is not there.
  Result<StoredTag> Read(std::string_view name);

  // kConflict when there is a tag of the name already, disabled ones included. In a cluster that
  // has been restored after a loss a tag with a ledger wants an explicit start: its old numbers may
  // have been lost with the node. Unless that is 1, ids count as out, and their form is fixed.
  // kInvalid for numbers beyond LimitOf.
  Status Create(const TagDefinition& tag);

  // Puts `after` in the place of what was read; the ledger and members of later versions stay as
  // they were. kInvalid when CheckEdit refuses, or a dated tag would start in a period to come;
  // kConflict when the node or meta has moved since.
  Status Replace(const StoredTag& read, TagDefinition after);

  // Replace for people, whose edit stands whatever the ledger does meanwhile: a busy tag's node is
  // written all the time. While only the ledger has moved it reads again and tries again, at most
  // kEditTriesMax times.
  Status Edit(const StoredTag& read, const TagDefinition& after);

  // Takes a tag away of which no number was ever given; its name is free for another one. kInvalid
  // when ids may be out, whoever is about to take the first ones: either this or the ledger's move
  // is done first, and the other one sees it.
  Status Delete(std::string_view name);

  // For `firn restore`, while the cluster is frozen under the root node that was read, before
  // ledgers are lifted: a tag that is there in another form than `tag` becomes what `tag` says, but
  // for ledger and start. kInvalid when CheckEdit refuses that, since ids may be out.
  Status Reform(const TagDefinition& tag, const MetaAsRead& frozen);

  // Likewise: makes a tag whose node is lost or does not read, as `tag` says it; one that is there
  // goes on from `start` at least, and stays what it is otherwise.
  Status Remake(const TagDefinition& tag, const MetaAsRead& frozen);

  // Moves the tag's ledger up to `high`, after a loss of data or because somebody else has given
  // numbers of the tag; lower changes nothing. For `firn restore` and `firn tags import` only; a
  // frozen cluster permits it, and one whose era's node is missing: restoring mends both. kConflict
  // as with Replace.
  Status Lift(const StoredTag& read, int64_t high);

 private:
  Result<StoredTag> ReadNode(std::string_view name, const MetaAsRead& meta);
  Result<StoredTag> ReadTag(std::string_view name, const MetaAsRead& meta);
  Status Put(const StoredTag& read, TagDefinition after);
  Status Overwrite(const StoredTag& read, const TagNode& node);
  Status Rewrite(const StoredTag& read, const TagNode& node);
  Status EnsureFolder();

  // Sends the multi {check(meta), what gives `path` the data, check(era) or nothing}. An unknown
  // outcome is read back: ok when the node then holds just these data in a version that the write
  // could have made.
  Status Send(std::vector<Write> writes, const std::string& path, const std::string& data);

  BlockingCoordinator& registry_;
};

}  // namespace firn
