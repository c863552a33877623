#include "tools/firn/restore/restore_facts.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/parse.h"
#include "common/tag/tag_name.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "registry/claim/claim_options.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore/restore_steps.h"
#include "tools/firn/verbs/id_words.h"

DEFINE_string(default_strategy, "",
              "Strategy of undefined tags in the new cluster: `snowflake`, and then no tag can "
              "be obfuscated, or empty to refuse them. Fixed for the cluster's life.");
DEFINE_string(ids_since, "",
              "Date or RFC 3339 time before which no id was issued, in a cluster that serves "
              "undefined tags. Segment and dated numbers end below the first id of that time. "
              "Empty: firn init takes a day before the cluster is made, firn restore keeps what is "
              "known.");
DEFINE_string(uuid, "",
              "UUID of the lost cluster that is re-created, as named in the servers' state "
              "folders.");
DEFINE_int32(workers, 0,
             "Number of machine ids per rack for which records are created. 0: as many as exist, "
             "or all of the layout.");
DEFINE_int32(lease_share, -1,
             "Share of each rack's machine ids that can be leased to programs, in percent: those "
             "with the highest workers. Servers claim these only if all others are in use. -1: 50. "
             "firn restore uses it if the root node is lost; firn set changes it otherwise.");
DEFINE_int64(claim_window_ms, 600'000,
             "Largest --claim_window_ms of any server, in milliseconds. The registry and backups "
             "record it; a larger value counts.");
DEFINE_int64(skew_max_ms, 10'000, "Largest known clock skew of any server, in milliseconds.");
DEFINE_string(bound_ms, "",
              "Further bounds above which the floor is lifted, in milliseconds since 1970, "
              "separated by commas: from /v1/status of servers that the registry does not list.");
DEFINE_string(tag_high, "",
              "Highest numbers known to be issued, from users' records, as tag=number separated "
              "by commas; tags are written as in paths.");
DEFINE_string(retire, "",
              "Machine ids to remove from use permanently, separated by commas: those of servers "
              "whose bound lies more than a day ahead.");
DEFINE_string(reserve, "",
              "Machine ids reserved for other systems, as ID=SYSTEM or FIRST-LAST=SYSTEM separated "
              "by commas, with names encoded as in URLs. Empty: only those in the registry.");
DEFINE_string(
    from, "",
    "For restore: files of `firn backup`, separated by commas, which name the cluster and "
    "whose numbers are lower bounds. For tags import: origin of the tags, leaf or tinyid (empty: "
    "leaf).");
DEFINE_int64(tag_gap, 1'000'000,
             "Minimum distance by which each segment tag jumps beyond everything known; at least "
             "twice its step_max.");

DEFINE_bool(again, false,
            "Restore once more although no fact is new since the last restore, because the data "
            "were lost again; or without the backup that an unfinished restore used.");

DECLARE_bool(dry_run);
DECLARE_string(layout);
DECLARE_int32(rack_bits);

namespace firn {
namespace {

// The flags that a later run needs, or that a printed command repeats.
constexpr std::string_view kSaidFlags[] = {
    "uuid",      "layout",      "rack_bits", "workers",     "claim_window_ms", "default_strategy",
    "ids_since", "lease_share", "reserve",   "skew_max_ms", "bound_ms",        "retire",
    "tag_high",  "tag_gap",     "again"};

// Returns the value of a flag; empty if a server has printed that it does not know it.
std::string KnownValue(const std::string& flag) { return flag == kUnreadSetting ? "" : flag; }

Status CheckNumbers(const RestoreOptions& options) {
  if (options.lease_share && (*options.lease_share < 0 || *options.lease_share > 100)) {
    return Invalid("--lease_share must be 0 to 100");
  }
  constexpr Milliseconds kYear{int64_t{366} * 86'400'000};
  if (!IsDefaultStrategy(options.default_strategy)) {
    return Invalid("--default_strategy must be snowflake or empty");
  }
  if (options.call.ledgers.wanted_gap < 0) return Invalid("--tag_gap must be 0 or more");
  for (const auto& [name, time] : {std::pair("--claim_window_ms", options.window),
                                   std::pair("--skew_max_ms", options.skew_max)}) {
    if (time < Milliseconds(0) || time > kYear) {
      return Invalid(Cat(name, " must be 0 to ", kYear.count(), " ms (366 days)"));
    }
  }
  return {};
}

// Parses whole numbers separated by commas; `what` names one of them in an error.
Result<std::vector<int64_t>> NumbersIn(const std::string& flag, const std::string& text,
                                       int64_t most, const char* what) {
  std::vector<int64_t> numbers;
  std::string_view rest = text;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const auto number = ParseNumberWithin<int64_t>(word, 0, most);
    if (!number) return Invalid(Cat("--", flag, ": '", word, "' is not a ", what));
    numbers.push_back(*number);
  }
  return numbers;
}

Result<std::vector<ReportedBound>> SaidBounds(const std::string& text) {
  FIRN_ASSIGN(const auto moments, NumbersIn("bound_ms", text, INT64_MAX, "time in ms"));
  std::vector<ReportedBound> bounds;
  for (const int64_t ms : moments) bounds.push_back({WallMs(ms)});
  return bounds;
}

Result<std::vector<MachineId>> SaidRetired(const std::string& text) {
  FIRN_ASSIGN(const auto numbers, NumbersIn("retire", text, UINT32_MAX, "machine id"));
  std::vector<MachineId> machines;
  for (const int64_t number : numbers) machines.emplace_back(static_cast<uint32_t>(number));
  return machines;
}

Result<std::vector<GivenTag>> GivenTags(const std::vector<std::string>& words) {
  std::vector<GivenTag> tags;
  for (const std::string& word : words) {
    if (word == kUnreadTags) continue;  // see CheckRead
    FIRN_ASSIGN(TagDefinition tag, ParseTagArgument(word));
    tags.push_back({std::move(tag), SaysFields(word)});
  }
  return tags;
}

// Parses --tag_high, in the form of a server's report.
Result<ProviderReport> SaidHighs(std::string_view rest) {
  ProviderReport said;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const size_t equals = std::min(word.rfind('='), word.size());
    const Result<std::string> tag = DecodeTagName(word.substr(0, equals));
    const std::string_view digits = word.substr(std::min(equals + 1, word.size()));
    const auto number = ParseNumberWithin<int64_t>(digits, 1, INT64_MAX - 1);
    if (!tag.ok() || !number)
      return Invalid(Cat("--tag_high: '", word, "' is not TAG=NUMBER, with a number above 0"));
    int64_t& high = said.high[*tag];
    high = std::max(high, *number + 1);
  }
  return said;
}

// Returns the named layout, or that of the backup.
Result<LayoutChoice> LayoutOf(const RestoreOptions& options) {
  const std::optional<Backup>& backup = options.call.ledgers.backup;
  if (!backup || options.Gives("layout")) {
    return ParseLayoutChoice(options.layout, options.rack_bits);
  }
  FIRN_ASSIGN(const Layout layout, Layout::Parse(backup->root.layout));
  const int rack_bits = options.Gives("rack_bits") ? options.rack_bits : backup->root.rack_bits;
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, rack_bits));
  return LayoutChoice{layout, split};
}

// The machine ids of the cluster as it will be.
Result<RackSplit> SplitOf(const Audit& audit, bool replaced, const LayoutChoice& choice) {
  if (!audit.meta || replaced) return choice.split;
  FIRN_ASSIGN(const Layout layout, Layout::Parse(audit.meta->layout));
  return RackSplit::Make(layout, audit.meta->rack_bits);
}

// Reads and merges the backups `from`; kConflict if they are not of one cluster, options.uuid if
// set.
Status ReadBackups(std::string_view from, RestoreOptions& options) {
  std::optional<Backup>& merged = options.call.ledgers.backup;
  while (!from.empty()) {
    const std::string file(from.substr(0, from.find(',')));
    from.remove_prefix(std::min(from.size(), file.size() + 1));
    FIRN_ASSIGN(const std::string text, ReadRegularFile(file, kBackupBytesMax));
    Result<Backup> backup = ParseBackup(text);
    if (!backup.ok()) return backup.status().WithContext(file);
    if (!options.uuid.empty() && options.uuid != backup->root.uuid) {
      return Conflict(Cat("--uuid is ", options.uuid, ", but ", file, " is a backup of cluster ",
                          backup->root.uuid));
    }
    // The command may be printed, and pasted in another folder.
    options.documents.push_back({std::filesystem::absolute(file).lexically_normal().string(),
                                 backup->checksum, backup->taken});
    if (merged) backup = MergeBackups(*merged, *backup);
    if (!backup.ok())
      return backup.status().WithContext(Cat("the files of --from cannot be merged"));
    merged = *std::move(backup);
  }
  return {};
}

Result<WallMs> IdsSinceOf(const std::string& text) {
  if (text.empty()) return WallMs();
  const Result<WallMs> moment = text.find('T') == text.npos ? ParseDate(text) : ParseRfc3339(text);
  if (moment.ok() && *moment > WallMs() && *moment < kRecordTimeMax) return *moment;
  return Invalid("--ids_since: '" + text +
                 "' is not a date, such as 2026-11-25, or an RFC 3339 time");
}

Status CheckSameCluster(const Audit& audit, const RestoreFacts& facts, const std::string& from) {
  if (facts.uuid.empty() || !audit.meta || audit.meta->uuid == facts.uuid) return {};
  if (audit.meta->floor == WallMs() && audit.NeverUsed()) return {};
  return Conflict(Cat("the registry contains the cluster ", audit.meta->uuid,
                      ", which was in use or restored",
                      from.empty() ? "" : Cat("; ", from, " is a backup of cluster ", facts.uuid)));
}

}  // namespace

Result<RestoreOptions> ReadRestoreOptions(const std::vector<std::string>& words) {
  RestoreOptions options{.uuid = FLAGS_uuid,
                         .layout = FLAGS_layout,
                         .rack_bits = FLAGS_rack_bits,
                         .default_strategy = KnownValue(FLAGS_default_strategy),
                         .window = Milliseconds(FLAGS_claim_window_ms),
                         .skew_max = Milliseconds(FLAGS_skew_max_ms),
                         .again = FLAGS_again,
                         .dry_run = FLAGS_dry_run};
  if (FLAGS_lease_share != -1) options.lease_share = FLAGS_lease_share;
  options.call.ledgers.wanted_gap = FLAGS_tag_gap;
  FIRN_TRY(CheckNumbers(options));
  FIRN_ASSIGN(options.call.tags, GivenTags(words));
  for (const GivenTag& one : options.call.tags) {
    int64_t& start = options.call.ledgers.starts[one.tag.name];
    start = std::max(start, one.tag.start.value_or(0));
  }
  FIRN_ASSIGN(options.call.highs, SaidHighs(FLAGS_tag_high));
  FIRN_TRY(ReadBackups(FLAGS_from, options));
  if (!options.uuid.empty() && !IsUuid(options.uuid))
    return Invalid(Cat("--uuid: '", options.uuid, "' is not a UUID"));
  if (FLAGS_workers > 0) options.workers = static_cast<uint32_t>(FLAGS_workers);
  FIRN_ASSIGN(options.ids_since, IdsSinceOf(FLAGS_ids_since));
  FIRN_ASSIGN(options.bounds, SaidBounds(FLAGS_bound_ms));
  FIRN_ASSIGN(options.retired, SaidRetired(FLAGS_retire));
  Result<std::vector<ReservedIds>> reserved = ParseReserved(KnownValue(FLAGS_reserve));
  if (!reserved.ok()) return reserved.status().WithContext("--reserve");
  options.reserved = *std::move(reserved);
  options.is_unread = FLAGS_default_strategy == kUnreadSetting || FLAGS_reserve == kUnreadSetting ||
                      std::ranges::find(words, kUnreadTags) != words.end();
  for (const char* flag : {"layout", "rack_bits", "default_strategy", "ids_since", "reserve"}) {
    if (IsFlagSet(flag)) options.given.insert(flag);
  }
  for (const std::string_view flag : kSaidFlags) {
    if (!IsFlagSet(flag.data())) continue;
    std::string value = gflags::GetCommandLineFlagInfoOrDie(flag.data()).current_value;
    if (options.ids_since != WallMs() && flag == "ids_since")
      value = FormatRfc3339(options.ids_since);  // so that times compare
    options.said_flags.push_back(Cat("--", flag, "=", value));
  }
  options.said_tags = words;
  if (FLAGS_default_strategy == kUnreadSetting) options.given.erase("default_strategy");
  if (FLAGS_reserve == kUnreadSetting) options.given.erase("reserve");
  return options;
}

Result<RestoreFacts> GatherFacts(const RestoreOptions& options, const Audit& audit, WallMs now) {
  const std::optional<Backup>& backup = options.call.ledgers.backup;
  FIRN_ASSIGN(const LayoutChoice choice, LayoutOf(options));
  RestoreFacts facts{.now = now,
                     .window = std::max(options.window, audit.settings.window),
                     .skew_max = options.skew_max,
                     .clock_skew_max = options.skew_max,
                     .bounds = options.bounds,
                     .retired = options.retired,
                     .reserved = options.reserved,
                     .uuid = backup ? backup->root.uuid : options.uuid,
                     .layout = choice.layout,
                     .rack_bits = choice.split.rack_bits(),
                     .default_strategy = options.default_strategy,
                     .ids_since = options.ids_since,
                     .lease_share = options.lease_share,
                     .workers = options.workers};
  FIRN_TRY(CheckSameCluster(audit, facts, RanCommand(options).from));
  const bool others = !facts.uuid.empty() && audit.meta && audit.meta->uuid != facts.uuid;
  if (!backup && !facts.uuid.empty() && (!audit.meta || others) && !options.Gives("layout")) {
    return Invalid("the cluster's root node is missing; name its layout with --layout");
  }
  facts.replaces_unused = others;
  FIRN_ASSIGN(const RackSplit split, SplitOf(audit, others, choice));
  if (backup) {
    AddBackup(*backup, audit, facts);
    if (!options.Gives("default_strategy")) {
      facts.default_strategy = backup->root.default_strategy;
    }
  }
  FIRN_TRY(CheckReserved(facts.reserved, split).WithContext("--reserve"));
  for (const AuditedProvider& provider : audit.providers) AddReport(provider.report, facts);
  return facts;
}

Status CheckRead(const RestoreOptions& options, const Audit& audit, const RestoreFacts& facts) {
  const bool is_lost = !audit.meta || facts.replaces_unused;
  if (!options.is_unread || options.call.ledgers.backup || !is_lost) return {};
  return Invalid(Cat(
      "the server that printed this command had not read all of the cluster before it was lost; "
      "use the command that another server shows (curl http://SERVER:7610/v1/status), or --from "
      "with a backup, or replace ",
      kUnreadSetting, " and ", kUnreadTags,
      " by what the cluster had: --default_strategy=snowflake or nothing, "
      "--reserve=0-1=SYSTEM or nothing, and every tag, as in order=5001"));
}

Status Recall(const RestoreMemory& earlier, RestoreOptions& options) {
  RestoreMemory memory = MemoryOf(options);
  memory.Join(earlier);
  std::vector<CommandLine::Setting> settings;
  for (const std::string& flag : memory.flags) {
    const size_t equals = std::min(flag.find('='), flag.size() - 1);
    settings.push_back({flag.substr(2, equals - 2), flag.substr(equals + 1)});
  }
  const Status set = ApplySettings(settings, {std::begin(kSaidFlags), std::end(kSaidFlags)});
  FIRN_TRY(set.WithContext("the arguments of the unfinished restore"));
  FIRN_ASSIGN(options, ReadRestoreOptions(memory.tags));
  return {};
}

RestoreMemory MemoryOf(const RestoreOptions& options) {
  RestoreArguments ran = RanCommand(options);
  RestoreMemory memory{.flags = std::move(ran.said_flags), .tags = std::move(ran.said_tags)};
  std::erase_if(memory.flags, [](const std::string& flag) {
    return flag.starts_with("--again=") || flag.ends_with(Cat("=", kUnreadSetting));
  });
  std::erase(memory.tags, kUnreadTags);
  memory.documents = options.documents;
  return memory;
}

RestoreArguments RestorePlace() {
  return {.registry = ChosenRegistry(), .auth_file = ChosenCredentialsFile()};
}

RestoreArguments RanCommand(const RestoreOptions& options) {
  RestoreArguments ran = RestorePlace();
  for (const auto& document : options.documents) {
    ran.from += Cat(ran.from.empty() ? "" : ",", document.path);
  }
  ran.said_flags = options.said_flags;
  ran.said_tags = options.said_tags;
  return ran;
}

}  // namespace firn
