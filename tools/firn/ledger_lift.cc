#include "tools/firn/ledger_lift.h"

#include <algorithm>
#include <optional>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "registry/cluster/registry_clock.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/restore_command.h"

namespace firn {
namespace {

Json LiftOne(TagStore& store, const StoredTag& stored, std::optional<int64_t> reported,
             int64_t wanted, WallMs now, Status& status, std::string& text) {
  const TagDefinition& tag = stored.tag();
  const int64_t known = std::max(tag.NextBegin(), reported.value_or(0));
  const int64_t high = LiftTo(tag, known, wanted, now), gap = high - known;
  status = store.Lift(stored, high);
  text += Cat("tag ", tag.name, " continues at ", high, "\n");
  if (!reported) {
    text += Cat("WARNING: no server reports the ledger of tag ", tag.name, ", so it was raised by ",
                gap,
                " above the registry's value; if higher numbers may have been issued, raise it "
                "further: ",
                PrintCommand(PrintedCommand::kTagsSet, {tag.name, "start=NUMBER"}), "\n");
  }
  return {{"tag", tag.name},
          {"high", std::to_string(high)},
          {"gap", std::to_string(gap)},
          {"reported", reported.has_value()}};
}

}  // namespace

std::optional<int64_t> ReportedOf(const std::string& tag,
                                  const std::vector<ProviderReport>& reports) {
  std::optional<int64_t> highest;
  for (const ProviderReport& report : reports) {
    if (!report.high.contains(tag) && report.high_others == 0) continue;
    highest = std::max(highest.value_or(0), report.HighOf(tag));
  }
  return highest;
}

Status LiftLedgers(BlockingCoordinator& registry, const std::vector<ProviderReport>& reports,
                   int64_t wanted_gap, Output& output) {
  TagStore store(registry);
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  FIRN_ASSIGN(const WallMs now, ReadRegistryClock(registry));
  Json& lifted = output.json["tags"] = Json::array();
  for (const StoredTag& stored : listing.tags) {
    const TagDefinition& tag = stored.tag();
    if (!tag.HasLedger()) {
      FIRN_TRY(store.Lift(stored, 0));  // writes only a node at version -1
      continue;
    }
    Status status;
    lifted.push_back(LiftOne(store, stored, ReportedOf(tag.name, reports), wanted_gap, now, status,
                             output.text));
    FIRN_TRY(status);
  }
  return {};
}

}  // namespace firn
