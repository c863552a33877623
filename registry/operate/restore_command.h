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
#include "registry/operate/root_settings.h"

namespace firn {

// The words of the command that puts a cluster right after its registry has lost data. Who knows
// the cluster, a server that runs say, prints it whole; an operator pastes it, however slow he is.
//
//     firn restore --registry=zk://h:2181/firn/shop --uuid=... --layout=firn --rack_bits=2
//         --bound_ms=1750000000000 order=5001001,step=50,plugins=history
//
// A tag is one word, TAG=START and the fields that are not as in a fresh definition, names and
// values encoded as in paths and URLs. START is the next number that it may give; 0: a tag without
// numbers. Without fields a word is a number alone, and says nothing of how the tag was defined.
struct RestoreWords {
  std::string registry;
  std::string auth_file{};  // empty: none is needed
  std::string uuid{};
  std::string layout{};
  std::optional<int> rack_bits{};
  // Empty: unknown. An empty strategy, or an empty list, is printed: the reader of the command sees
  // that there is none.
  std::optional<std::string> default_strategy{};
  std::optional<std::vector<ReservedIds>> reserved{};
  std::optional<WallMs> bound{};        // the highest that may have been used
  std::vector<MachineId> retired{};     // before the loss, or because their bounds were absurd
  std::vector<TagDefinition> tags{};    // lost ones; `high` is how far each may have come
  std::vector<TagDefinition> unread{};  // likewise, but who prints does not know how far
};

// Takes over all of `settings`; the machine ids that they retire are added.
void AddSettings(const RootSettings& settings, RestoreWords& words);

// A server's own knowledge of its cluster, which it prints when the registry's data were lost.
struct KnownCluster {
  std::vector<std::pair<std::optional<MachineId>, WallMs>> bounds{};  // of its machine ids
  std::map<std::string, int64_t> highest{};                           // of ledgers it has read
  std::map<std::string, TagDefinition> tags{};
  WallMs now{};
};

// Adds it: a bound more than a day ahead retires its machine id, and a tag whose ledger the server
// has not read asks for a number.
void AddKnown(const KnownCluster& known, RestoreWords& words);

// The whole command, quoted for a shell. Every tag starts GapOf beyond its `high`. In the place of
// a number that is not known stands START: whoever pastes it is asked for the number.
std::string RestoreCommand(const RestoreWords& words);

// One tag's word, a number alone for a tag without a strategy, and the definition that such a word
// says; kInvalid names the word. Its `start` is START.
std::string TagWord(const TagDefinition& tag);
Result<TagDefinition> ParseTagWord(std::string_view word);

// Whether the word says how the tag was defined.
bool SaysFields(std::string_view word);

// The least that a tag's ledger goes beyond all that is known of it, or `wanted` if that is more:
// two of its largest ranges.
int64_t GapOf(const TagDefinition& tag, int64_t wanted);
inline constexpr int64_t kTagGap = 1'000'000;

// Where a tag's ledger goes on that has come as far as `known`: GapOf beyond it. That of a dated
// tag by a tenth of a period's numbers, or two of its largest ranges if that is more, whatever is
// wanted, and from the beginning of the present period at least, when it is known what the
// registry's clock shows; at most to the end of that period, or of the one that is known.
int64_t LiftTo(const TagDefinition& tag, int64_t known, int64_t wanted,
               std::optional<WallMs> now = {});

// `a` + `b`, or the last number there is.
int64_t SumOrMax(int64_t a, int64_t b);

}  // namespace firn
