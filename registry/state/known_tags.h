#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "registry/cluster/tag_node.h"

namespace firn {

// A tag as it was read last. In memory its ledger says only whether it has moved: `high` is 0 or 1.
// In the file `high` and `returned` are the ledger's own, at most a minute old.
struct KnownTag {
  enum class State {
    kFine,
    kUnreadable,  // there is a node of that name, which cannot be parsed
    kLost,        // the registry had it once and has it no more
  };

  State state = State::kFine;
  TagNode node{};  // the last that could be read

  friend bool operator==(const KnownTag&, const KnownTag&) = default;
};

// All that a server knows of how a cluster's tags are to be served.
struct KnownTags {
  std::string default_strategy{};          // as ClusterMeta has it
  std::map<std::string, KnownTag> tags{};  // by name
  bool complete = true;                    // false: the registry has more tags

  friend bool operator==(const KnownTags&, const KnownTags&) = default;
};

// A server reads this many of the registry's tags, and ignores all others.
inline constexpr size_t kListedTagsMax = 10'000;

// <stem>.<uuid>.tags in the state folder.
inline constexpr size_t kKnownTagsBytesMax = 256 << 20;
// The text that is kept of cluster `uuid`, and back. kCorrupt: it is another cluster's, or not
// whole.
//
//     firn tags 2 <uuid> <default strategy, or ->      (3: the list is incomplete)
//     <encoded name> fine|unreadable|lost <the node's data>
//     end <number of tags>
//
// A list of kListedTagsMax tags or more counts as incomplete in either format.
std::string FormatKnownTags(const std::string& uuid, const KnownTags& tags);
Result<KnownTags> ParseKnownTags(const std::string& uuid, std::string_view text);

}  // namespace firn
