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

// Restores the tag's form. If ids may exist in both forms, reports it and keeps the present form.
Status Reform(TagStore& store, const TagDefinition& tag, const MetaAsRead& frozen, Output& output) {
  const Status reformed = store.Reform(tag, frozen);
  if (reformed.code() != Code::kInvalid) return reformed;
  output.wrong = true;
  output.text += "WRONG: " + reformed.message() + "\n";
  return {};
}

// Creates the tag if it is missing, also above the reported ledgers; an existing tag was lifted.
Status Remake(TagStore& store, TagDefinition tag, const MetaAsRead& frozen,
              std::optional<int64_t> reported, int64_t wanted_gap, WallMs now, Output& output) {
  const int64_t said = tag.start.value_or(1);
  const bool missing = tag.HasLedger() && !store.Read(tag.name).ok();
  if (missing && tag.Dated()) {  // numbers of the present period may exist, whatever `start` says
    tag.start = LiftTo(tag, std::max(said, reported.value_or(1)), wanted_gap, now);
  } else if (missing && reported) {
    tag.start = std::max(said, LiftTo(tag, *reported, wanted_gap));
  }
  FIRN_TRY(store.Remake(tag, frozen));
  output.text += "tag " + tag.name + " exists";
  output.text += tag.start ? Cat("; its next number is ", *tag.start, " or higher\n") : "\n";
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
