#include "tools/firn/restore/ledger_lift.h"

#include <algorithm>
#include <optional>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "registry/cluster/registry_clock.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/restore_command.h"

namespace firn {
namespace {

int64_t HighestKnown(const TagDefinition& tag, const LedgerFacts& facts) {
  return std::max(tag.NextBegin(), KnownOf(tag.name, facts).value_or(0));
}

Json LiftOne(TagStore& store, const StoredTag& stored, const LedgerFacts& facts, WallMs now,
             Status& status, std::string& text) {
  const TagDefinition& tag = stored.tag();
  const bool reported = ReportedOf(tag.name, facts.reports).has_value();
  const int64_t high = LiftedTo(tag, facts, now), gap = high - HighestKnown(tag, facts);
  status = store.Lift(stored, high);
  text += Cat("tag ", tag.name, " continues at ", high, "\n");
  if (!reported) {
    text +=
        Cat("WARNING: no server reports the ledger of tag ", tag.name, ", so it was raised by ",
            gap, " above the ",
            facts.backup ? "higher of the registry's and the backup's value" : "registry's value",
            "; if higher numbers may have been issued, raise it further: ",
            PrintCommand(PrintedCommand::kTagsSet, {tag.name, "start=NUMBER"}), "\n");
  }
  return {{"tag", tag.name},
          {"high", std::to_string(high)},
          {"gap", std::to_string(gap)},
          {"reported", reported}};
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

std::optional<int64_t> KnownOf(const std::string& tag, const LedgerFacts& facts) {
  const std::optional<int64_t> reported = ReportedOf(tag, facts.reports);
  const TagNode* const saved = facts.backup ? facts.backup->Find(tag) : nullptr;
  if (saved == nullptr || !saved->tag.HasLedger()) return reported;
  return std::max(reported.value_or(0), saved->tag.NextBegin());
}

int64_t LiftedTo(const TagDefinition& tag, const LedgerFacts& facts, WallMs now) {
  return LiftTo(tag, HighestKnown(tag, facts), facts.wanted_gap, now);
}

Status LiftLedgers(BlockingCoordinator& registry, const LedgerFacts& facts, Output& output) {
  TagStore store(registry);
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  FIRN_ASSIGN(const WallMs now, ReadRegistryClock(registry));
  Json& lifted = output.json["tags"] = Json::array();
  for (const StoredTag& stored : listing.tags) {
    if (!stored.tag().HasLedger()) {
      FIRN_TRY(store.Lift(stored, 0));  // writes only a node at version -1
      continue;
    }
    Status status;
    lifted.push_back(LiftOne(store, stored, facts, now, status, output.text));
    FIRN_TRY(status);
  }
  return {};
}

}  // namespace firn
