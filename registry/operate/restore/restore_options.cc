#include "registry/operate/restore/restore_options.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/id/rack_split.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"

namespace firn {
namespace {

// How far ahead of the clock an answer can put the floor. A mistake cannot be withdrawn, and LeadOf
// takes a very long lead for an error.
constexpr Milliseconds kFloorAheadMax = std::chrono::days(30);

Result<WallMs> IdsSinceOf(const std::string& text) {
  if (text.empty()) return WallMs();
  const Result<WallMs> moment = text.find('T') == text.npos ? ParseDate(text) : ParseRfc3339(text);
  if (moment.ok() && *moment > WallMs() && *moment < kRecordTimeMax) return *moment;
  return Invalid("--ids_since: '" + text +
                 "' is not a date, such as 2026-11-25, or an RFC 3339 time");
}

Status TakeNumber(std::string_view flag, std::string_view text, int64_t& number) {
  const auto parsed = ParseNumber<int64_t>(text);
  if (!parsed) return Invalid(Cat("--", flag, ": '", text, "' is not a valid value"));
  number = *parsed;
  return {};
}

// Changes a time to the form in which times compare.
Status SetFlag(std::string_view flag, std::string& value, RestoreOptions& options) {
  int64_t number = 0;
  if (flag == "uuid") {
    if (!value.empty() && !IsUuid(value))
      return Invalid(Cat("--uuid: '", value, "' is not a UUID"));
    options.uuid = value;
  } else if (flag == "layout") {
    options.layout = value;
  } else if (flag == "rack_bits") {
    FIRN_TRY(TakeNumber(flag, value, number));
    options.rack_bits = static_cast<int>(std::clamp<int64_t>(number, -1, INT32_MAX));
  } else if (flag == "ids_since") {
    FIRN_ASSIGN(options.ids_since, IdsSinceOf(value));
    if (!value.empty()) value = FormatRfc3339(options.ids_since);
  } else if (flag == "skew_max_ms") {
    FIRN_TRY(TakeNumber(flag, value, number));
    options.skew_max = Milliseconds(number);
    if (number < 0 || options.skew_max > kFloorAheadMax)
      return Invalid(Cat("--skew_max_ms must be 0 to ", kFloorAheadMax.count(), " ms (30 days)"));
  } else if (flag == "tag_gap") {
    FIRN_TRY(TakeNumber(flag, value, number));
    options.call.ledgers.wanted_gap = number;
    if (number < 0) return Invalid("--tag_gap must be 0 or more");
  } else if (flag == "again") {
    options.again = value == "true";
  } else {
    return Invalid(Cat("--", flag, " is not a flag of a restore"));
  }
  return {};
}

Status CheckDocuments(const RestoreOptions& options) {
  for (size_t i = 0; i < options.documents.size() && !options.uuid.empty(); ++i) {
    const std::string& uuid = options.call.ledgers.documents[i].root.uuid;
    if (options.uuid == uuid) continue;
    return Conflict(Cat("--uuid is ", options.uuid, ", but ", options.documents[i].path,
                        " is a backup of cluster ", uuid));
  }
  return {};
}

// Returns the documents' paths, separated by commas.
std::string FromOf(const RestoreOptions& options) {
  std::string from;
  for (const auto& document : options.documents) {
    from += Cat(from.empty() ? "" : ",", document.path);
  }
  return from;
}

// Returns the layout of the backup, or the named one.
Result<LayoutChoice> LayoutOf(const RestoreOptions& options) {
  const std::optional<Backup>& backup = options.call.ledgers.backup;
  if (!backup || backup->root.layout.empty()) {
    return ParseLayoutChoice(options.layout, options.rack_bits);
  }
  return ParseLayoutChoice(backup->root.layout, backup->root.rack_bits);
}

// Returns kConflict if the registry, the documents and the command differ in a setting that is
// fixed for a cluster's life. Ids rely on these settings.
Status CheckFixed(const RestoreOptions& options, const Audit& audit, bool others) {
  std::optional<Backup> known = options.call.ledgers.backup;
  const bool has_registry = audit.meta && !others;
  const auto agree = [&](const Backup& a, const Backup& b) -> Status {
    const Status same = CheckAgree(a, b);
    if (same.ok() || !has_registry) return same;
    return Conflict(
        Cat(same.message(),
            "; if the registry is wrong, delete the registry's data and restore again"));
  };
  if (has_registry) {
    const Backup registry{.root = SettingsOf(*audit.meta, audit.meta_version, audit.settings)};
    if (known) FIRN_TRY(agree(registry, *known).WithContext("the registry and --from"));
    known = registry;
  }
  if (!known || known->root.layout.empty()) return {};
  RootSettings said = known->root;
  if (options.IsGiven("layout")) {
    FIRN_ASSIGN(const LayoutChoice named, ParseLayoutChoice(options.layout, -1));
    said.layout = named.layout.text();
  }
  if (options.IsGiven("rack_bits")) said.rack_bits = options.rack_bits;
  said.default_strategy = options.call.answers.default_strategy.value_or(said.default_strategy);
  const Backup command{.root = said, .settings_known = known->settings_known};
  return agree(*known, command).WithContext("the cluster and this command");
}

// Returns the split of machine ids that the cluster will have after the restore.
Result<RackSplit> SplitOf(const Audit& audit, bool replaced, const LayoutChoice& choice) {
  if (!audit.meta || replaced) return choice.split;
  FIRN_ASSIGN(const Layout layout, Layout::Parse(audit.meta->layout));
  return RackSplit::Make(layout, audit.meta->rack_bits);
}

Status CheckSameCluster(const Audit& audit, const RestoreFacts& facts, const std::string& from) {
  if (facts.uuid.empty() || !audit.meta || audit.meta->uuid == facts.uuid) return {};
  if (audit.meta->floor == WallMs() && audit.NeverUsed()) return {};
  return Conflict(Cat("the registry contains the cluster ", audit.meta->uuid,
                      ", which was in use or restored",
                      from.empty() ? "" : Cat("; ", from, " is a backup of cluster ", facts.uuid)));
}

// An earlier version may have stored a floor beyond the limit: it is ignored as a wrong bound.
Status AddFloors(const std::vector<WallMs>& floors, const Audit& audit, RestoreFacts& facts) {
  RestoreAnswers used;
  if (audit.unfinished) used = ParseAnswers(audit.unfinished->Answers()).value_or({});
  for (const WallMs floor : floors) {
    if (floor - facts.now <= kFloorAheadMax) {
      facts.floor = std::max(facts.floor, floor);
    } else if (std::ranges::count(used.floors, floor) > 0) {
      facts.bounds.push_back({floor});
    } else {
      return Invalid(Cat("--set=floor=", FormatRfc3339(floor),
                         " is more than 30 days ahead of the clock; give the highest time in ids"));
    }
  }
  return {};
}

}  // namespace

bool RestoreOptions::IsGiven(std::string_view flag) const {
  const std::string prefix = Cat("--", flag, "=");
  return std::ranges::any_of(flags, [&](const auto& one) { return one.starts_with(prefix); });
}

Status SetFlags(const std::vector<std::string>& flags, RestoreOptions& options) {
  std::vector<std::string> answers, given;
  for (const std::string& flag : flags) {
    const size_t equals = flag.find('=');
    if (!flag.starts_with("--") || equals == flag.npos) {
      return Invalid(Cat(Quoted(flag), " is not a flag with a value"));
    }
    const std::string name = flag.substr(2, equals - 2);
    std::string value = flag.substr(equals + 1);
    if (name == "set") {
      answers.push_back(std::move(value));
      continue;
    }
    FIRN_TRY(SetFlag(name, value, options));
    given.push_back(Cat("--", name, "=", value));
  }
  RestoreCall& call = options.call;
  FIRN_ASSIGN(call.answers, ParseAnswers(answers));
  call.ledgers.starts.clear();
  for (const GivenTag& one : call.answers.tags) {
    if (one.tag.start) call.ledgers.starts[one.tag.name] = *one.tag.start;
  }
  for (const std::string& answer : call.answers.said) given.push_back("--set=" + answer);
  options.flags = std::move(given);
  return CheckDocuments(options);
}

Status AddDocument(const std::string& path, Backup document, RestoreOptions& options) {
  LedgerFacts& ledgers = options.call.ledgers;
  options.documents.push_back({path, document.checksum, document.taken});
  ledgers.documents.push_back(document);
  FIRN_TRY(CheckDocuments(options));
  if (ledgers.backup) {
    Result<Backup> merged = MergeBackups(*ledgers.backup, document);
    if (!merged.ok()) return merged.status().WithContext("the files of --from cannot be merged");
    document = *std::move(merged);
  }
  ledgers.backup = std::move(document);
  return {};
}

Status Recall(const RestoreMemory& earlier, RestoreOptions& options) {
  RestoreMemory memory = MemoryOf(options, "");
  memory.Join(earlier);
  if (options.again) memory.flags.insert(memory.flags.begin(), "--again=true");
  return SetFlags(memory.flags, options).WithContext("the flags of the unfinished restore");
}

RestoreMemory MemoryOf(const RestoreOptions& options, const std::string& host) {
  RestoreMemory memory{.documents = options.documents, .host = host, .flags = options.flags};
  std::erase_if(memory.flags, [](const auto& flag) { return flag.starts_with("--again="); });
  return memory;
}

RestoreArguments RanCommand(const RestoreOptions& options, RestoreArguments place) {
  place.from = FromOf(options);
  place.flags = options.flags;
  return place;
}

Result<RestoreFacts> GatherFacts(const RestoreOptions& options, const Audit& audit, WallMs now) {
  const std::optional<Backup>& backup = options.call.ledgers.backup;
  FIRN_ASSIGN(const LayoutChoice choice, LayoutOf(options));
  const RestoreAnswers& answers = options.call.answers;
  RestoreFacts facts{
      .now = now,
      .window = std::max(answers.window.value_or(ClaimOptions().window), audit.settings.window),
      .skew_max = options.skew_max,
      .clock_skew_max = options.skew_max,
      .retired = answers.retired,
      .reserved = answers.reserved.value_or(std::vector<ReservedIds>()),
      .uuid = backup ? backup->root.uuid : options.uuid,
      .layout = choice.layout,
      .rack_bits = choice.split.rack_bits(),
      .default_strategy = answers.default_strategy.value_or(""),
      .ids_since = options.ids_since,
      .lease_share = answers.lease_share,
      .workers = answers.workers};
  FIRN_TRY(AddFloors(answers.floors, audit, facts));
  FIRN_TRY(CheckSameCluster(audit, facts, FromOf(options)));
  const bool others = !facts.uuid.empty() && audit.meta && audit.meta->uuid != facts.uuid;
  const bool has_layout = (backup && !backup->root.layout.empty()) || options.IsGiven("layout");
  if (!has_layout && !facts.uuid.empty() && (!audit.meta || others)) {
    return Invalid("the cluster's root node is missing; name its layout with --layout");
  }
  facts.replaces_unused = others;
  FIRN_TRY(CheckFixed(options, audit, others));
  FIRN_ASSIGN(const RackSplit split, SplitOf(audit, others, choice));
  AddDocuments(options.call.ledgers, audit, facts);
  if (backup && backup->settings_known) facts.default_strategy = backup->root.default_strategy;
  FIRN_TRY(CheckReserved(facts.reserved, split).WithContext("--set=reserve"));
  for (const AuditedProvider& provider : audit.providers) AddReport(provider.report, facts);
  return facts;
}

}  // namespace firn
