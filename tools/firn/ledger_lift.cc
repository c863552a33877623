#include "tools/firn/ledger_lift.h"

#include <algorithm>
#include <optional>

#include "registry/tag_store.h"

namespace firn {
namespace {

using Json = nlohmann::ordered_json;

int64_t Sum(int64_t known, int64_t gap) {
  return known > INT64_MAX - gap ? INT64_MAX : known + gap;
}

Json LiftOne(TagStore& store, const StoredTag& stored, std::optional<int64_t> reported, int64_t gap,
             Status& status, std::string& text) {
  const TagDefinition& tag = stored.tag();
  const int64_t high = Sum(std::max(tag.NextBegin(), reported.value_or(0)), gap);
  status = store.Lift(stored, high);
  text += "tag " + tag.name + " goes on from " + std::to_string(high) + "\n";
  if (!reported) {
    text += "WARNING: no server reports the ledger of tag " + tag.name + ": lifted by " +
            std::to_string(gap) +
            " beyond the tree; if more may have been taken since, raise its "
            "start\n";
  }
  return {{"tag", tag.name},
          {"high", std::to_string(high)},
          {"gap", std::to_string(gap)},
          {"reported", reported.has_value()}};
}

// Nothing tells what the tag was.
Json Lost(const std::string& name, int64_t seen, int64_t wanted_gap, std::string& text) {
  const int64_t start = Sum(seen, GapOf(TagDefinition(), wanted_gap));
  text += "WRONG: the node of tag " + name +
          " is lost; make it anew with start=" + std::to_string(start) + " or more\n";
  return {{"tag", name}, {"lost", true}, {"seen", std::to_string(seen)}};
}

}  // namespace

std::map<std::string, int64_t> HighestIn(const std::vector<ProviderReport>& reports) {
  std::map<std::string, int64_t> highest;
  for (const ProviderReport& report : reports) {
    for (const auto& [tag, high] : report.high) highest[tag] = std::max(highest[tag], high);
  }
  return highest;
}

std::optional<int64_t> ReportedOf(const std::string& tag,
                                  const std::vector<ProviderReport>& reports) {
  std::optional<int64_t> highest;
  for (const ProviderReport& report : reports) {
    if (!report.high.contains(tag) && report.high_others == 0) continue;
    highest = std::max(highest.value_or(0), report.HighOf(tag));
  }
  return highest;
}

int64_t GapOf(const TagDefinition& tag, int64_t wanted) {
  const int64_t range = std::max(tag.step, tag.step_max);
  return std::max(wanted, Sum(range, range));
}

Status LiftLedgers(BlockingCoordinator& registry, const std::vector<ProviderReport>& reports,
                   int64_t wanted_gap, Output& output) {
  std::map<std::string, int64_t> lost = HighestIn(reports);
  TagStore store(registry);
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  Json& lifted = output.json["tags"] = Json::array();
  for (const StoredTag& stored : listing.tags) {
    const TagDefinition& tag = stored.tag();
    lost.erase(tag.name);
    if (tag.strategy != "segment") continue;
    Status status;
    lifted.push_back(LiftOne(store, stored, ReportedOf(tag.name, reports), GapOf(tag, wanted_gap),
                             status, output.text));
    FIRN_TRY(status);
  }
  for (const auto& [name, high] : lost) {
    output.wrong = true;
    lifted.push_back(Lost(name, high, wanted_gap, output.text));
  }
  output.wrong |= !listing.faults.empty();
  for (const std::string& fault : listing.faults) output.text += "WRONG: " + fault + "\n";
  return {};
}

}  // namespace firn
