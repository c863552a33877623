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

// A call of `firn restore` that a program prints for a person to run.
struct RestoreArguments {
  std::string registry;
  std::string auth_file{};           // empty: not needed
  std::string from{};                // documents, separated by commas
  std::vector<std::string> flags{};  // others, as they were given: --uuid=..., --set=order.high=5
  std::string host{};                // of the program that prints; empty: another one
};

// What a server knows of a cluster whose settings are not in its state folder.
struct UnsavedSettings {
  std::string layout{};  // empty: unknown
  int rack_bits = 0;     // 0: unknown
  Milliseconds window{};
};
// Returns the command that a server prints to restore the cluster. `place.from`: its state folder.
std::string ServerRestoreCommand(RestoreArguments place, const std::string& uuid,
                                 const std::optional<UnsavedSettings>& unsaved);

// Returns the command, quoted for a shell.
std::string RestoreCommand(const RestoreArguments& words);

// Returns the command that repairs the audit's losses; empty if there are none, or only servers
// know the cluster. If a restore is unfinished, the command names its documents, after the machine
// that has them if that is another one, and the registry remembers its answers. A restore that this
// version cannot continue has a sentence instead. A tag whose node is damaged, and that no server
// knows, has placeholders: the document that contains it, and what it lacks. `place`: the registry
// and how it is reached.
std::string RepairCommand(const Audit& audit, RestoreArguments place);

// A tag that an operator names: its `start` and, if `defined`, its form.
struct GivenTag {
  TagDefinition tag;
  bool defined = true;
};

// What an operator answers to the questions of a restore, each as KEY=VALUE:
//
//     order.high=5000        the highest number of a tag that was issued; the gap comes on top
//     order.start=5001       the next number of a tag; a gap only if an earlier run was given it
//     order.strategy=dated   defines a lost tag, together with order.step=50 and so on for each
//                            field that has not its default
//     floor=2026-11-25T...   a time that ids may have reached, or milliseconds since 1970
//     window=5400000         the largest --claim_window_ms of any server
//     workers=16             machine ids of each rack
//     retire=3,7             machine ids that are never claimed again
//     reserve=0-1=old        machine ids of another system; none
//     default_strategy=none  of undefined tags, in a cluster whose settings are lost: snowflake,
//     none lease_share=70         likewise tags=none              no other tag existed
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
  bool all_folders = false;

  // Returns the tag, or null.
  const GivenTag* Find(const std::string& tag) const;
};

// kInvalid names the answer that cannot be understood, or is given twice.
Result<RestoreAnswers> ParseAnswers(const std::vector<std::string>& said);

// `order.high=5000` for a tag, as ParseAnswers takes it.
std::string AnswerOf(const std::string& tag, const std::string& key, const std::string& value);

// How far a tag's ledger is raised beyond its highest known value: two of its largest ranges, or
// `wanted` if that is more.
int64_t GapOf(const TagDefinition& tag, int64_t wanted);

// Returns the new ledger of a tag whose highest known value is `known`: GapOf beyond it. A dated
// tag is raised by a tenth of a period's numbers, or two of its largest ranges if that is more,
// independently of `wanted`. Its result is at least the begin of the current period, if the
// registry's clock is known, and at most the end of that period, or of the known one.
int64_t LiftTo(const TagDefinition& tag, int64_t known, int64_t wanted,
               std::optional<WallMs> now = {});

// `a` + `b`, or the highest number if the sum overflows.
int64_t SumOrMax(int64_t a, int64_t b);

}  // namespace firn
