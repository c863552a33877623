#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/tag/tag_definition.h"
#include "registry/operate/audit.h"
#include "registry/operate/root_settings.h"
#include "registry/servers/provider.h"

namespace firn {

// A `firn restore` command that a program prints for a person to run.
struct RestoreArguments {
  std::string registry;
  std::string auth_file{};           // empty: not needed
  std::string from{};                // documents, separated by commas
  std::vector<std::string> flags{};  // others: --uuid=..., --set=order.high=5
  std::string host{};                // of the program that prints; empty: another one
};

// A server's settings of a cluster, for a command without a document that contains them.
struct UnsavedSettings {
  std::string layout{};  // empty: unknown
  int rack_bits = 0;     // 0: unknown
  Milliseconds window{};
};
// Returns the restore command that a server prints. `place.from`: its state folder. `unfinished`:
// if not null, UnfinishedCommand.
std::string ServerRestoreCommand(RestoreArguments place, const std::string& uuid,
                                 const std::optional<UnsavedSettings>& unsaved,
                                 const RestoreMemory* unfinished = nullptr);

// Returns the command that completes an unfinished restore of cluster `uuid`: log, status, doctor,
// audit and console show this one. It names the documents, after the name of their machine if that
// is another one; the registry remembers the answers. `place`: the registry, the credentials and
// the host.
std::string UnfinishedCommand(const RestoreMemory& unfinished, const std::string& uuid,
                              RestoreArguments place);

// Returns the command, quoted for a shell.
std::string RestoreCommand(const RestoreArguments& words);

// Returns the command that repairs the audit's losses; empty if there are none, or if only servers
// know the cluster. For an unfinished restore it is UnfinishedCommand. A damaged tag that no server
// knows gets placeholders for its document, its form and its number. `place`: as there.
std::string RepairCommand(const Audit& audit, RestoreArguments place);

// A tag that an operator names: its `start` and, if `defined`, its form.
struct GivenTag {
  TagDefinition tag;
  bool defined = true;
};

// An operator's answers to the questions of a restore, each as KEY=VALUE:
//
//     order.high=5000        the highest issued number of a tag; the gap is added
//     order.start=5001       the next number of a tag; the gap is added only if an earlier run had
//                            this answer
//     order.strategy=dated   defines a lost tag, together with order.step=50 and so on for each
//                            field that differs from its default
//     floor=2026-11-25T...   a time that ids may have reached, or milliseconds since 1970
//     window=5400000         the largest --claim_window_ms of any server
//     workers=16             machine ids of each rack
//     retire=3,7             machine ids that are never claimed again
//     reserve=0-1=old        machine ids of another system; none
//     default_strategy=none  of undefined tags, in a cluster whose settings are lost; or snowflake
//     lease_share=70         likewise, in percent
//     tags=none              no other tag existed
//     definitions=any        any definition of a tag whose documents differ, in the same form
//     folders=all            the documents contain the state folders of all servers
//
// A tag's name is encoded as in paths; a dot in it is written %2E. A value.
struct RestoreAnswers {
  std::vector<std::string> said{};  // all of them, each key once
  std::vector<GivenTag> tags{};
  ProviderReport highs{};  // in the form of a server's report
  std::vector<WallMs> floors{};
  std::optional<Milliseconds> window{};
  std::optional<uint32_t> workers{};
  std::vector<MachineId> retired{};
  std::optional<std::vector<ReservedIds>> reserved{};
  std::optional<std::string> default_strategy{};
  std::optional<int64_t> lease_share{};
  bool no_other_tags = false;
  bool any_definitions = false;
  bool all_folders = false;

  // Returns the tag, or null.
  const GivenTag* Find(const std::string& tag) const;
};

// kInvalid names an answer that is unknown or invalid, or that has two values.
Result<RestoreAnswers> ParseAnswers(const std::vector<std::string>& said);

// Returns an answer for a tag, such as `order.high=5000`.
std::string AnswerOf(const std::string& tag, const std::string& key, const std::string& value);

// Returns the gap between a tag's highest known value and its new ledger: two of its largest
// ranges, or `wanted` if that is more.
int64_t GapOf(const TagDefinition& tag, int64_t wanted);

// Returns the new ledger of a tag whose highest known value is `known`: GapOf above it. For a dated
// tag the gap is a tenth of a period's numbers, or two of its largest ranges if that is more,
// independently of `wanted`. The result is then at least the begin of the current period, if `now`
// (by the registry's clock) is known, and at most the end of the later of both periods.
int64_t LiftTo(const TagDefinition& tag, int64_t known, int64_t wanted,
               std::optional<WallMs> now = {});

// `a` + `b`, or the highest number if the sum overflows.
int64_t SumOrMax(int64_t a, int64_t b);

}  // namespace firn
