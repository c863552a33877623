#include "tools/firn/restore/restore_facts.h"

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/net/endpoint.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_options.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/verbs/id_words.h"

DEFINE_string(ids_since, "",
              "Date or RFC 3339 time before which no id was issued, in a cluster that serves "
              "undefined tags. Segment and dated numbers end below the first id of that time. "
              "Empty: firn init takes a day before the cluster is made, firn restore keeps what is "
              "known.");
DEFINE_string(uuid, "",
              "UUID of the lost cluster that is re-created, as named in the servers' state "
              "folders.");
DEFINE_int64(skew_max_ms, 10'000, "Largest known clock skew of any server, in milliseconds.");
DEFINE_string(
    set, "",
    "Answer to a question of the plan, as KEY=VALUE; can be repeated. Answers only raise: "
    "TAG.high (its highest number), TAG.start (its next one), TAG.FIELD (of a lost tag), floor "
    "(a time that ids may have reached), window, workers, retire, reserve, lease_share, "
    "default_strategy, tags, folders.");
DEFINE_string(from, "",
              "For restore: files of `firn backup`, state folders of servers, or - for a document "
              "on standard "
              "input, separated by commas. They name the cluster, and their numbers are lower "
              "bounds. For tags import: origin of the tags, leaf or tinyid (empty: "
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

// The flags that a later run needs, or that a printed command repeats, besides --set.
constexpr std::string_view kSaidFlags[] = {"uuid",        "layout",  "rack_bits", "ids_since",
                                           "skew_max_ms", "tag_gap", "again"};

constexpr char kPasted[] = "-";
constexpr char kPlaceholder[] = "DOCUMENT";  // in a printed command

Status CheckNumbers(const RestoreOptions& options) {
  constexpr Milliseconds kYear{int64_t{366} * 86'400'000};
  if (options.call.ledgers.wanted_gap < 0) return Invalid("--tag_gap must be 0 or more");
  if (options.skew_max >= Milliseconds(0) && options.skew_max <= kYear) return {};
  return Invalid(Cat("--skew_max_ms must be 0 to ", kYear.count(), " ms (366 days)"));
}

// Returns the layout of the backup, or the named one.
Result<LayoutChoice> LayoutOf(const RestoreOptions& options) {
  const std::optional<Backup>& backup = options.call.ledgers.backup;
  if (!backup || backup->root.layout.empty()) {
    return ParseLayoutChoice(options.layout, options.rack_bits);
  }
  FIRN_ASSIGN(const Layout layout, Layout::Parse(backup->root.layout));
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, backup->root.rack_bits));
  return LayoutChoice{layout, split};
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
  if (IsFlagSet("layout")) {
    FIRN_ASSIGN(const LayoutChoice named, ParseLayoutChoice(options.layout, -1));
    said.layout = named.layout.text();
  }
  if (IsFlagSet("rack_bits")) said.rack_bits = options.rack_bits;
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

// Returns the text pasted for `--from=-`. Standard input can be read only once, so the text is
// kept.
Result<std::string> PastedText() {
  static const std::string& text =
      *new std::string(std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>());
  if (text.size() <= kBackupBytesMax) return text;
  return Invalid(Cat("the pasted document has more than ", kBackupBytesMax, " bytes"));
}

// Reads a file of `firn backup`, a server's document, or its state folder.
Result<Backup> ReadDocument(const std::string& from, const std::string& uuid) {
  std::error_code none;
  if (std::filesystem::is_directory(from, none)) return ReadStateDocument(from, uuid);
  FIRN_ASSIGN(const std::string text,
              from == kPasted ? PastedText() : ReadRegularFile(from, kBackupBytesMax));
  Result<Backup> backup = ParseBackup(text);
  return backup.ok() ? backup : backup.status().WithContext(from);
}

// Reads and merges the documents `from`. kConflict if they are not all of the same cluster, which
// is that of options.uuid if set.
Status ReadDocuments(std::string_view from, RestoreOptions& options) {
  std::optional<Backup>& merged = options.call.ledgers.backup;
  while (!from.empty()) {
    const std::string file(from.substr(0, from.find(',')));
    from.remove_prefix(std::min(from.size(), file.size() + 1));
    Result<Backup> backup = ReadDocument(file, options.uuid);
    if (!backup.ok()) return backup.status();
    if (!options.uuid.empty() && options.uuid != backup->root.uuid) {
      return Conflict(Cat("--uuid is ", options.uuid, ", but ", file, " is a backup of cluster ",
                          backup->root.uuid));
    }
    // A printed command may run in another folder, so the path must be absolute.
    const std::string path = file == kPasted
                                 ? kPlaceholder
                                 : std::filesystem::absolute(file).lexically_normal().string();
    options.documents.push_back({path, backup->checksum, backup->taken});
    options.call.ledgers.documents.push_back(*backup);
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

Result<RestoreOptions> ReadRestoreOptions(const std::vector<std::string>& answers) {
  RestoreOptions options{.uuid = FLAGS_uuid,
                         .layout = FLAGS_layout,
                         .rack_bits = FLAGS_rack_bits,
                         .skew_max = Milliseconds(FLAGS_skew_max_ms),
                         .again = FLAGS_again,
                         .dry_run = FLAGS_dry_run};
  RestoreCall& call = options.call;
  call.ledgers.wanted_gap = FLAGS_tag_gap;
  FIRN_TRY(CheckNumbers(options));
  FIRN_ASSIGN(call.answers, ParseAnswers(answers));
  for (const GivenTag& one : call.answers.tags) {
    if (one.tag.start) call.ledgers.starts[one.tag.name] = *one.tag.start;
  }
  if (!options.uuid.empty() && !IsUuid(options.uuid))
    return Invalid(Cat("--uuid: '", options.uuid, "' is not a UUID"));
  FIRN_TRY(ReadDocuments(FLAGS_from, options));
  FIRN_ASSIGN(options.ids_since, IdsSinceOf(FLAGS_ids_since));
  for (const std::string_view flag : kSaidFlags) {
    if (!IsFlagSet(flag.data())) continue;
    std::string value = gflags::GetCommandLineFlagInfoOrDie(flag.data()).current_value;
    if (options.ids_since != WallMs() && flag == "ids_since")
      value = FormatRfc3339(options.ids_since);  // so that times compare
    options.said_flags.push_back(Cat("--", flag, "=", value));
  }
  for (const std::string& answer : call.answers.said) {
    options.said_flags.push_back("--set=" + answer);
  }
  return options;
}

std::vector<std::string> AnswersOnCommandLine() {
  std::vector<std::string> answers;
  std::string_view rest = FLAGS_set;
  while (!rest.empty()) {
    const std::string_view answer = rest.substr(0, rest.find(kFlagSeparator));
    rest.remove_prefix(std::min(rest.size(), answer.size() + 1));
    answers.emplace_back(answer);
  }
  return answers;
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
  for (const WallMs floor : answers.floors) facts.bounds.push_back({floor});
  FIRN_TRY(CheckSameCluster(audit, facts, RanCommand(options).from));
  const bool others = !facts.uuid.empty() && audit.meta && audit.meta->uuid != facts.uuid;
  const bool has_layout = (backup && !backup->root.layout.empty()) || IsFlagSet("layout");
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

Status Recall(const RestoreMemory& earlier, RestoreOptions& options) {
  RestoreMemory memory = MemoryOf(options);
  memory.Join(earlier);
  std::vector<CommandLine::Setting> settings;
  for (const std::string& flag : memory.flags) {
    const size_t equals = std::min(flag.find('='), flag.size() - 1);
    const std::string name = flag.substr(2, equals - 2);
    if (name != "set") settings.push_back({name, flag.substr(equals + 1)});
  }
  const Status set = ApplySettings(settings, {std::begin(kSaidFlags), std::end(kSaidFlags)});
  FIRN_TRY(set.WithContext("the flags of the unfinished restore"));
  FIRN_ASSIGN(options, ReadRestoreOptions(memory.Answers()));
  return {};
}

RestoreMemory MemoryOf(const RestoreOptions& options) {
  RestoreMemory memory{
      .documents = options.documents, .host = HostName(), .flags = options.said_flags};
  std::erase_if(memory.flags, [](const auto& flag) { return flag.starts_with("--again="); });
  return memory;
}

RestoreArguments RestorePlace() {
  return {.registry = ChosenRegistry(), .auth_file = ChosenCredentialsFile(), .host = HostName()};
}

RestoreArguments RanCommand(const RestoreOptions& options) {
  RestoreArguments ran = RestorePlace();
  for (const auto& document : options.documents) {
    ran.from += Cat(ran.from.empty() ? "" : ",", document.path);
  }
  ran.flags = options.said_flags;
  return ran;
}

}  // namespace firn
