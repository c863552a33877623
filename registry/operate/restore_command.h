#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "registry/operate/audit.h"
#include "registry/operate/root_settings.h"

namespace firn {

// The arguments of the command that restores a cluster after its registry has lost data. A running
// server knows the cluster and prints the whole command; an operator pastes it at any later time.
//
//     firn restore --registry=zk://h:2181/firn/shop --uuid=... --layout=firn --rack_bits=2
//         --bound_ms=1750000000000 order=5001001,step=50,plugins=history
//
// A tag is one argument, TAG=START and the fields that differ from a new definition, names and
// values encoded as in paths and URLs. START is the next number that it may issue; 0: a tag without
// numbers. Without fields, the argument is only a number and does not define the tag. A START that
// is not known is printed as such, or as START_ABOVE_5000 where 5000 were issued at least: the
// command refuses both. A server that lost its cluster before it had read all of it prints
// --default_strategy=UNKNOWN, --reserve=UNKNOWN and TAG=START: the command refuses them unless the
// registry or a backup contains the cluster.
struct RestoreArguments {
  std::string registry;
  std::string auth_file{};  // empty: not needed
  std::string uuid{};
  std::string layout{};
  std::optional<int> rack_bits{};
  uint32_t workers = 0;   // machine ids of each rack; 0: unknown
  Milliseconds window{};  // the largest of a claim; 0: the default
  // Not set: unknown. An empty strategy, or an empty list, is printed, so that the command shows
  // that there is none.
  std::optional<std::string> default_strategy{};
  std::optional<std::vector<ReservedIds>> reserved{};
  WallMs ids_since{};  // 0: unknown
  int64_t lease_share = ClusterMeta::kLeaseShare;
  std::optional<WallMs> bound{};        // the highest that may have been used
  std::vector<MachineId> retired{};     // before the loss, or because their bounds are implausible
  std::vector<TagDefinition> tags{};    // lost tags; `high` is the highest value each may have had
  std::string from{};                   // the backups that were named; empty: none
  std::vector<TagDefinition> unread{};  // lost tags of which only lower numbers are known
  // Which parts of the cluster the printing server has never read.
  bool root_unread = false;
  bool tags_unread = false;
  // The flags and arguments that an operator gave, word for word. The printed command repeats them;
  // a flag here replaces the one of a member above.
  std::vector<std::string> said_flags{};
  std::vector<std::string> said_tags{};
};

// Stand for what a server has not read.
inline constexpr char kUnreadSetting[] = "UNKNOWN";
inline constexpr char kUnreadTags[] = "TAG=START";

// Whether a printed command has one of these placeholders.
bool HasUnread(std::string_view command);

// Copies all of `settings`; adds their retired machine ids.
void AddSettings(const RootSettings& settings, RestoreArguments& words);

// Times that ids may have reached, each of a machine id if that is known.
using Bounds = std::vector<std::pair<std::optional<MachineId>, WallMs>>;

// A server's own knowledge of its cluster, which it prints after the registry has lost data.
struct KnownCluster {
  Bounds bounds{};                           // of its machine ids
  std::map<std::string, int64_t> highest{};  // of the ledgers it has read
  std::map<std::string, TagDefinition> tags{};
  WallMs now{};
};

// Adds it. A bound more than a day ahead retires its machine id. A tag whose ledger the server has
// not read gets a placeholder for its number.
void AddKnown(const KnownCluster& known, RestoreArguments& words);

// What a server's state folder contains about one cluster. Only printed commands use it: no claim
// and no id depends on it.
struct KeptCluster {
  std::optional<RootSettings> root{};
  std::map<std::string, TagDefinition> tags{};  // with the ledgers as they were saved last
  Bounds last{};  // the highest id time of each machine id that the server held last
};

// Returns the command that restores the cluster `words.uuid`, from all that one server knows.
// `words` also contains the registry and what else is known, which the settings replace. `root`:
// the newest settings that the server has, or null. `tags_read`: whether it has read the cluster's
// tags; otherwise those of its state folder are lost, too.
std::string ServerRestoreCommand(RestoreArguments words, const RootSettings* root,
                                 const KeptCluster& kept, bool tags_read, KnownCluster known);

// Adds the cluster that an audit has read.
void AddAudit(const Audit& audit, RestoreArguments& words);

// Returns the command that repairs the audit's losses, with the lost tags that it knows; empty if
// there are none, or only servers know the cluster. If a restore is unfinished, the command
// names its documents, and the registry remembers its arguments. `place`: the registry and how it
// is reached.
std::string RepairCommand(const Audit& audit, RestoreArguments place);

// Returns the whole command, quoted for a shell. Every tag starts GapOf beyond its `high`. An
// unknown number is printed as START, until the operator replaces it.
std::string RestoreCommand(const RestoreArguments& words);

// Converts a tag to its argument (only a number for a tag without a strategy; START_ABOVE_ and the
// known one if the gap would leave no numbers), and an argument to a definition, whose `start` is
// START. kInvalid names the argument.
std::string FormatTagArgument(const TagDefinition& tag);
Result<TagDefinition> ParseTagArgument(std::string_view word);

// Whether the argument defines the tag.
bool SaysFields(std::string_view word);

// How far a tag's ledger is raised beyond its highest known value: two of its largest ranges, or
// `wanted` if that is more.
int64_t GapOf(const TagDefinition& tag, int64_t wanted);
inline constexpr int64_t kTagGap = 1'000'000;

// Returns the new ledger of a tag whose highest known value is `known`: GapOf beyond it. A dated
// tag is raised by a tenth of a period's numbers, or two of its largest ranges if that is more,
// independently of `wanted`. Its result is at least the begin of the current period, if the
// registry's clock is known, and at most the end of that period, or of the known one.
int64_t LiftTo(const TagDefinition& tag, int64_t known, int64_t wanted,
               std::optional<WallMs> now = {});

// `a` + `b`, or the highest number if the sum overflows.
int64_t SumOrMax(int64_t a, int64_t b);

}  // namespace firn
