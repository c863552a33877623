#include "tools/firn/restore_tags.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/cat.h"
#include "registry/cluster/registry_clock.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/restore_command.h"
#include "tools/firn/ledger_lift.h"

namespace firn {
namespace {

// A form that cannot be put right is told: ids may be out in both.
Status Reform(TagStore& store, const TagDefinition& tag, const MetaAsRead& frozen, Output& output) {
  const Status reformed = store.Reform(tag, frozen);
  if (reformed.code() != Code::kInvalid) return reformed;
  output.wrong = true;
  output.text += "WRONG: " + reformed.message() + "\n";
  return {};
}

// One that is not there goes on above what others know of it, too; one that is has been lifted.
Status Remake(TagStore& store, TagDefinition tag, const MetaAsRead& frozen,
              std::optional<int64_t> reported, int64_t wanted_gap, WallMs now, Output& output) {
  const int64_t said = tag.start.value_or(1);
  const bool missing = tag.HasLedger() && !store.Read(tag.name).ok();
  if (missing && tag.Dated()) {  // the present period's numbers may be out, whatever is said
    tag.start = LiftTo(tag, std::max(said, reported.value_or(1)), wanted_gap, now);
  } else if (missing && reported) {
    tag.start = std::max(said, LiftTo(tag, *reported, wanted_gap));
  }
  FIRN_TRY(store.Remake(tag, frozen));
  output.text += "tag " + tag.name + " is there";
  output.text += tag.start ? Cat(", and goes on from ", *tag.start, " or more\n") : "\n";
  return {};
}

}  // namespace

Status RestoreTags(BlockingCoordinator& registry, const MetaAsRead& frozen,
                   const std::vector<SaidTag>& said, const std::vector<ProviderReport>& reports,
                   int64_t wanted_gap, Output& output) {
  TagStore store(registry);
  for (const auto& [tag, defined] : said) {
    if (defined) FIRN_TRY(Reform(store, tag, frozen, output));
  }
  FIRN_TRY(LiftLedgers(registry, reports, wanted_gap, output));
  FIRN_ASSIGN(const WallMs now, ReadRegistryClock(registry));
  for (const auto& [tag, defined] : said) {
    const auto reported = ReportedOf(tag.name, reports);
    FIRN_TRY(Remake(store, tag, frozen, reported, wanted_gap, now, output));
  }
  return {};
}

}  // namespace firn
