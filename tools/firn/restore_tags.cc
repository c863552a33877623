#include "tools/firn/restore_tags.h"

#include <algorithm>
#include <optional>
#include <string>

#include "common/base/cat.h"
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
              std::optional<int64_t> reported, int64_t wanted_gap, Output& output) {
  if (tag.strategy == "segment" && reported && !store.Read(tag.name).ok()) {
    tag.start = std::max(tag.start.value_or(1), SumOrMax(*reported, GapOf(tag, wanted_gap)));
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
  for (const auto& [tag, defined] : said) {
    FIRN_TRY(Remake(store, tag, frozen, ReportedOf(tag.name, reports), wanted_gap, output));
  }
  return {};
}

}  // namespace firn
