#include "registry/operate/restore_memory.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/json/json.h"
#include "common/json/json_object.h"

namespace firn {
namespace {

constexpr size_t kMemoryValuesMax = 10'000;
constexpr Milliseconds kLeadMax = std::chrono::days(400);

// How the values of two runs are merged. Other flags keep the newer value.
enum class Join { kHighest, kEarliest, kAll };
constexpr std::pair<std::string_view, Join> kJoins[] = {
    {"--set=floor=", Join::kAll},      {"--set=retire=", Join::kAll},
    {"--set=reserve=", Join::kAll},    {"--set=workers=", Join::kHighest},
    {"--set=window=", Join::kHighest}, {"--skew_max_ms=", Join::kHighest},
    {"--tag_gap=", Join::kHighest},    {"--ids_since=", Join::kEarliest}};
constexpr std::string_view kNoItems = "none";  // of a list

// A member of a tag's node.
constexpr char kMade[] = "made_by_restore";

constexpr std::string_view kSet = "--set=";

// Returns the name of a flag or an answer: `--tag_gap=`, `--set=order.high=`.
std::string_view FlagNameOf(std::string_view flag) {
  const size_t from = flag.starts_with(kSet) ? kSet.size() + 1 : 0;  // `=` may begin a tag's name
  return flag.substr(0, flag.find('=', from) + 1);
}

// Returns whether the flags redefine the tag that has this field. Its highest number stays, and so
// does its next one if the new definition has numbers.
bool IsRedefined(std::string_view name, const std::vector<std::string>& flags) {
  const size_t dot = name.find('.');
  if (dot == name.npos || name.ends_with(".high=")) return false;
  const std::string strategy = Cat(name.substr(0, dot), ".strategy=");
  const auto defined =
      std::ranges::find_if(flags, [&](const auto& flag) { return flag.starts_with(strategy); });
  if (defined == flags.end()) return false;
  const TagDefinition tag{.name = "", .strategy = defined->substr(strategy.size())};
  return !name.ends_with(".start=") || !tag.HasLedger();
}

int64_t NumberIn(std::string_view text) { return ParseNumberWithin<int64_t>(text, 0).value_or(0); }

// Adds the items of a list, separated by commas, that `list` lacks. `none` gives way to any item.
void AddItems(std::string_view items, std::string& list) {
  if (list == kNoItems) list.clear();
  while (!items.empty()) {
    const std::string_view item = items.substr(0, items.find(','));
    items.remove_prefix(std::min(items.size(), item.size() + 1));
    const bool known = Cat(",", list, ",").find(Cat(",", item, ",")) != std::string::npos;
    if (known || (item == kNoItems && !list.empty())) continue;
    list += Cat(list.empty() ? "" : ",", item);
  }
}

void JoinValue(std::string_view name, std::string_view earlier, std::string& value) {
  const auto* const rule =
      std::ranges::find(kJoins, name, [](const auto& one) { return one.first; });
  const bool is_number = name.ends_with(".high=") || name.ends_with(".start=");
  if (rule == std::end(kJoins) && !is_number) return;
  const Join join = is_number ? Join::kHighest : rule->second;
  const bool is_less =
      join == Join::kHighest ? NumberIn(value) < NumberIn(earlier) : earlier < value;
  if (join == Join::kAll) {
    AddItems(earlier, value);
  } else if (is_less) {
    value = earlier;
  }
}

Result<RestoreMemory> Parse(const std::string& text, std::string& era) {
  FIRN_ASSIGN(const Json json, ParseJson(text, kRestoreBytesMax, kMemoryValuesMax));
  RestoreMemory memory;
  int64_t lead = 0;
  JsonReader read(json);
  read.Text("era", era)
      .Text("replaced", memory.replaced)
      .Text("host", memory.host)
      .Text("plan", memory.plan)
      .NumberIfAny("lead_ms", lead, 0, kRecordTimeMax.ms());
  FIRN_TRY(read.status());
  memory.lead = Milliseconds(lead);
  const Json &flags = json.at("flags"), &documents = json.at("documents");
  if (!flags.is_array() || !documents.is_array()) return Corrupt("a member is not a list");
  for (const Json& flag : flags) memory.flags.push_back(flag.text());
  for (const Json& one : documents) {
    RestoreMemory::Document document;
    int64_t taken = 0;
    JsonReader member(one);
    member.Text("path", document.path, kRestoreBytesMax)
        .Text("checksum", document.checksum)
        .Number("taken_ms", taken, 0, kRecordTimeMax.ms());
    FIRN_TRY(member.status());
    document.taken = WallMs(taken);
    memory.documents.push_back(std::move(document));
  }
  return memory;
}

}  // namespace

bool RestoreMemory::Knows(const Document& document) const {
  return std::ranges::any_of(documents, [&](const Document& one) {
    return one.checksum == document.checksum && one.taken >= document.taken;
  });
}

std::vector<std::string> RestoreMemory::Answers() const {
  std::vector<std::string> answers;
  for (const std::string& flag : flags) {
    if (flag.starts_with(kSet)) answers.push_back(flag.substr(kSet.size()));
  }
  return answers;
}

void RestoreMemory::Join(const RestoreMemory& earlier) {
  if (replaced.empty()) replaced = earlier.replaced;
  if (!earlier.plan.empty()) plan = earlier.plan;
  lead = std::max(lead, earlier.lead);
  for (const Document& one : earlier.documents) {
    if (!Knows(one)) documents.push_back(one);
  }
  const std::vector<std::string> mine = flags;
  for (const std::string& one : earlier.flags) {
    const std::string_view name = FlagNameOf(one);
    if (IsRedefined(name, mine)) continue;
    const auto same = std::ranges::find(flags, name, FlagNameOf);
    if (same == flags.end()) {
      flags.push_back(one);
      continue;
    }
    std::string value = same->substr(name.size());
    JoinValue(name, std::string_view(one).substr(name.size()), value);
    *same = Cat(name, value);
  }
}

bool RestoreMemory::Lacks(const RestoreMemory& earlier) const {
  RestoreMemory joined = *this;
  joined.Join(earlier);
  return joined.flags != flags;
}

bool RestoreMemory::Overlooks(const RestoreMemory& earlier) const {
  const auto is_unknown = [this](const Document& one) { return !Knows(one); };
  return Lacks(earlier) || std::ranges::any_of(earlier.documents, is_unknown);
}

std::string FormatRestoreMemory(const RestoreMemory& memory, const Nonce& era) {
  Json json{{"era", era.text()},   {"replaced", memory.replaced}, {"host", memory.host},
            {"plan", memory.plan}, {"flags", memory.flags},       {"documents", Json::array()}};
  for (const auto& [path, checksum, taken] : memory.documents) {
    json["documents"].push_back({{"path", path}, {"checksum", checksum}, {"taken_ms", taken.ms()}});
  }
  if (memory.lead > Milliseconds(0)) json["lead_ms"] = memory.lead.count();
  return JsonText(json);
}

Milliseconds LeadOf(WallMs floor, WallMs began) {
  const bool is_known = floor != WallMs() && began != WallMs() && floor - began <= kLeadMax;
  return is_known ? std::max(Milliseconds(0), floor - began) : Milliseconds(0);
}

Result<RestoreMemoryAsRead> ReadRestoreMemory(BlockingCoordinator& registry,
                                              const ClusterMeta& root) {
  return RestoreMemoryIn(registry.Read(kRestorePath), root);
}

Result<RestoreMemoryAsRead> RestoreMemoryIn(const Result<Node>& node, const ClusterMeta& root) {
  if (node.code() == Code::kNotFound) return RestoreMemoryAsRead();
  if (node.code() == Code::kCorrupt) return RestoreMemoryAsRead{{}, true};
  if (!node.ok()) return node.status();
  RestoreMemoryAsRead read{{}, true, node->stat.version};
  std::string era;
  const Result<RestoreMemory> memory = Parse(node->data, era);
  if (memory.ok() && root.frozen && era == root.era.text()) read.memory = *memory;
  return read;
}

std::map<std::string, int64_t> MadeTags(const TagListing& listing, const std::string& plan) {
  std::map<std::string, int64_t> made;
  for (const StoredTag& stored : listing.tags) {
    if (plan.empty() || stored.node.others.empty()) continue;
    const Result<Json> others = ParseJson(stored.node.others, kTagNodeBytesMax);
    if (!others.ok() || !others->contains(kMade)) continue;
    const Json& by = others->at(kMade);
    const auto known = by.at("known").whole();
    if (known && by.at("plan") == plan) made.emplace(stored.tag().name, *known);
  }
  return made;
}

std::string WithMade(const std::string& others, const std::string& plan, int64_t known) {
  Result<Json> members = ParseJson(others.empty() ? "{}" : others, kTagNodeBytesMax);
  if (plan.empty() || !members.ok()) return others;
  (*members)[kMade] = {{"plan", plan}, {"known", known}};
  return JsonText(*members);
}

std::string WithoutMade(const std::string& others) {
  if (others.empty()) return others;
  Result<Json> members = ParseJson(others, kTagNodeBytesMax);
  if (!members.ok()) return others;
  members->erase(kMade);
  return members->empty() ? "" : JsonText(*members);
}

}  // namespace firn
