#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "common/tag/tag_name.h"
#include "common/time/civil_time.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/tag_store.h"
#include "registry/operate/audit.h"
#include "registry/operate/restore.h"
#include "registry/operate/restore_command.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore_report.h"
#include "tools/firn/restore_steps.h"
#include "tools/firn/restore_tags.h"
#include "tools/firn/verbs/id_words.h"
#include "tools/firn/verbs/verbs.h"

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
DEFINE_int64(claim_window_ms, 600'000, "Largest --claim_window_ms of any server, in milliseconds.");
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
DEFINE_bool(again, false,
            "Lift everything once more, although the cluster has just been restored and nothing "
            "new is known, because its data were lost again.");
DEFINE_int64(tag_gap, 1'000'000,
             "Minimum distance by which each segment tag jumps beyond everything known; at least "
             "twice its step_max.");

namespace firn {
namespace {

using Words = std::vector<std::string>;

Status CheckNumbers() {
  constexpr int64_t kYear = int64_t{366} * 86'400'000;
  if (!IsDefaultStrategy(FLAGS_default_strategy)) {
    return Invalid("--default_strategy must be snowflake or empty");
  }
  if (FLAGS_tag_gap < 0) return Invalid("--tag_gap must be 0 or more");
  for (const auto& [name, ms] : {std::pair("--claim_window_ms", FLAGS_claim_window_ms),
                                 std::pair("--skew_max_ms", FLAGS_skew_max_ms)}) {
    if (ms < 0 || ms > kYear) return Invalid(Cat(name, " must be 0 to ", kYear, " ms (366 days)"));
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

Result<std::vector<ReportedBound>> SaidBounds() {
  FIRN_ASSIGN(const auto moments, NumbersIn("bound_ms", FLAGS_bound_ms, INT64_MAX, "time in ms"));
  std::vector<ReportedBound> bounds;
  for (const int64_t ms : moments) bounds.push_back({WallMs(ms)});
  return bounds;
}

Result<std::vector<MachineId>> SaidRetired() {
  FIRN_ASSIGN(const auto numbers, NumbersIn("retire", FLAGS_retire, UINT32_MAX, "machine id"));
  std::vector<MachineId> machines;
  for (const int64_t number : numbers) machines.emplace_back(static_cast<uint32_t>(number));
  return machines;
}

Result<std::vector<SaidTag>> SaidTags(const Words& words) {
  std::vector<SaidTag> tags;
  for (const std::string& word : words) {
    FIRN_ASSIGN(TagDefinition tag, ParseTagWord(word));
    tags.push_back({std::move(tag), SaysFields(word)});
  }
  return tags;
}

// Returns --tag_high in the form of a server's report.
Result<ProviderReport> TagHighsFromFlag() {
  ProviderReport said;
  std::string_view rest = FLAGS_tag_high;
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

// Refuses a restore of all data without a word about the lost cluster: the new one would have
// another uuid, and its servers would refuse it.
Status CheckThatClusterIsNamed(BlockingCoordinator& registry) {
  if (!FLAGS_uuid.empty() || IsSaid("layout")) return {};
  if (ReadMeta(registry).code() != Code::kNotFound) return {};
  return Invalid("the registry has no cluster, and --uuid does not name the lost one; use the " +
                 PrintCommand(PrintedCommand::kRestore) + " command in the servers' logs, or " +
                 PrintCommand(PrintedCommand::kInit) + " for a new cluster");
}

// The machine ids of the cluster as it will be.
Result<RackSplit> SplitOf(const Audit& audit, bool replaced, const LayoutChoice& choice) {
  if (!audit.meta || replaced) return choice.split;
  FIRN_ASSIGN(const Layout layout, Layout::Parse(audit.meta->layout));
  return RackSplit::Make(layout, audit.meta->rack_bits);
}

// Gathers the facts for a restore from the flags, the registry and the running servers' reports.
Result<RestoreFacts> GatherFacts(const Audit& audit) {
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  if (!FLAGS_uuid.empty() && !IsUuid(FLAGS_uuid))
    return Invalid(Cat("--uuid: '", FLAGS_uuid, "' is not a UUID"));
  const bool others = !FLAGS_uuid.empty() && audit.meta && audit.meta->uuid != FLAGS_uuid;
  const bool unused = audit.meta && audit.meta->floor == WallMs() && audit.NeverUsed();
  if (others && !unused) {
    return Conflict("the registry contains the cluster " + audit.meta->uuid +
                    ", which was in use or restored");
  }
  if (!FLAGS_uuid.empty() && (!audit.meta || others) && !IsSaid("layout")) {
    return Invalid("the cluster's root node is missing; name its layout with --layout");
  }
  FIRN_ASSIGN(const WallMs ids_since, ChosenIdsSince());
  FIRN_ASSIGN(std::vector<ReportedBound> said, SaidBounds());
  FIRN_ASSIGN(std::vector<MachineId> retired, SaidRetired());
  Result<std::vector<ReservedIds>> reserved = ParseReservedWord(FLAGS_reserve);
  if (!reserved.ok()) return reserved.status().WithContext("--reserve");
  FIRN_ASSIGN(const RackSplit split, SplitOf(audit, others, choice));
  FIRN_TRY(CheckReserved(*reserved, split).WithContext("--reserve"));
  RestoreFacts facts{.now = SystemClock().Wall(),
                     .window = Milliseconds(FLAGS_claim_window_ms),
                     .skew_max = Milliseconds(FLAGS_skew_max_ms),
                     .clock_skew_max = Milliseconds(FLAGS_skew_max_ms),
                     .bounds = std::move(said),
                     .retired = std::move(retired),
                     .reserved = *std::move(reserved),
                     .uuid = FLAGS_uuid,
                     .layout = choice.layout,
                     .rack_bits = choice.split.rack_bits(),
                     .default_strategy = FLAGS_default_strategy,
                     .ids_since = ids_since,
                     .workers = ChosenWorkers(),
                     .replaces_unused = others};
  for (const AuditedProvider& provider : audit.providers) AddReport(provider.report, facts);
  return facts;
}

std::vector<ProviderReport> ReportsIn(const Audit& audit) {
  std::vector<ProviderReport> reports;
  for (const AuditedProvider& provider : audit.providers) reports.push_back(provider.report);
  return reports;
}

// Returns kConflict if `tags` omits a lost tag that servers report: they would freeze the cluster
// again.
Status CheckLostTags(const Audit& audit, const std::vector<SaidTag>& tags) {
  std::vector<TagDefinition> unsaid;
  for (const auto& [name, seen] : audit.lost_tags) {
    const auto said = std::find_if(tags.begin(), tags.end(),
                                   [&name](const SaidTag& one) { return one.tag.name == name; });
    if (seen == 0 || said != tags.end()) continue;
    TagDefinition lost;
    lost.name = name;
    lost.high = seen;
    unsaid.push_back(std::move(lost));
  }
  if (unsaid.empty()) return {};
  const std::string first = unsaid.front().name;
  return Conflict(
      "nothing was done: the node of tag " + first +
      " is lost, and servers would freeze the cluster again. Add its next number, and its other "
      "fields as they were (a server's /v1/status and log show them), and disabled=true if it is "
      "no longer needed:\n" +
      RestoreCommandFor(audit, std::move(unsaid)));
}

// Returns whether the arguments name only existing tags, no number above their ledgers, and no
// other form.
Result<bool> TagsCover(BlockingCoordinator& registry, const std::vector<SaidTag>& tags,
                       const ProviderReport& said) {
  FIRN_ASSIGN(const TagListing listing, TagStore(registry).ReadAll());
  std::map<std::string, TagDefinition> there;
  for (const StoredTag& tag : listing.tags) there[tag.tag().name] = tag.tag();
  const auto covers = [&there](const std::string& tag, int64_t number) {
    const auto found = there.find(tag);
    return found != there.end() && found->second.NextBegin() >= number;
  };
  return std::all_of(tags.begin(), tags.end(),
                     [&](const SaidTag& one) {
                       return covers(one.tag.name, one.tag.start.value_or(0)) &&
                              (!one.defined || FormOf(one.tag) == FormOf(there[one.tag.name]));
                     }) &&
         std::all_of(said.high.begin(), said.high.end(),
                     [&](const auto& high) { return covers(high.first, high.second); });
}

// Returns whether the cluster has just been restored, with a floor above all that is known now.
bool FloorCovers(const Audit& audit, const RestoreFacts& facts) {
  if (!audit.meta || audit.meta->frozen || audit.losses > 0 || facts.replaces_unused) return false;
  const Milliseconds since = facts.now - audit.meta_set_at;
  const Milliseconds margin = 3 * facts.window;
  const WallMs floor = audit.meta->floor;
  if (since > margin || floor < audit.meta_set_at + margin) return false;
  const auto is_retired = [&audit](MachineId machine) {
    return std::any_of(audit.slots.begin(), audit.slots.end(), [machine](const auto& slot) {
      return slot.machine == machine && slot.record.retired;
    });
  };
  for (const auto& [bound, machine] : facts.bounds) {
    // A plausible bound of a running server equals its record, or the audit would report a loss.
    const bool absurd = bound - facts.now > kPoisonAhead;
    if (absurd ? !machine || !is_retired(*machine) : !machine && bound > floor) return false;
  }
  for (const auto& [first, last, used_by] : facts.reserved) {
    for (uint32_t id = first.value(); id <= last.value(); ++id)
      if (!is_retired(MachineId(id))) return false;
  }
  return facts.now + facts.skew_max <= floor &&
         std::all_of(facts.retired.begin(), facts.retired.end(), is_retired);
}

Output NothingNew(const Audit& audit, const RestoreFacts& facts) {
  const int64_t seconds = (facts.now - audit.meta_set_at).count() / 1000;
  return {.json = {{"uuid", audit.meta->uuid},
                   {"floor_ms", audit.meta->floor.ms()},
                   {"root_made", false},
                   {"nothing_new", true}},
          .text = Cat("the cluster was restored ", seconds,
                      " s ago and nothing new is known, so nothing was changed. If data were lost "
                      "again since then, use --again\n")};
}

Result<Output> RunRestore(const Words& words) {
  FIRN_ASSIGN(RegistrySession session, RegistrySession::OpenOrCreate());
  FIRN_TRY(CheckThatClusterIsNamed(session.registry()));
  return RestoreAsFlagsSay(session.registry(), words);
}

// Reports tags whose nodes cannot be read and that no argument defines.
Status TellUnreadable(BlockingCoordinator& registry, Output& output) {
  FIRN_ASSIGN(const TagListing listing, TagStore(registry).ReadAll());
  output.wrong |= !listing.faults.empty();
  for (const std::string& fault : listing.faults) output.text += "WRONG: " + fault + "\n";
  return {};
}

}  // namespace

std::optional<uint32_t> ChosenWorkers() {
  if (FLAGS_workers <= 0) return std::nullopt;
  return static_cast<uint32_t>(FLAGS_workers);
}

Result<WallMs> ChosenIdsSince() {
  const std::string& text = FLAGS_ids_since;
  if (text.empty()) return WallMs();
  const Result<WallMs> moment = text.find('T') == text.npos ? ParseDate(text) : ParseRfc3339(text);
  if (moment.ok() && *moment > WallMs() && *moment < kRecordTimeMax) return *moment;
  return Invalid("--ids_since: '" + text +
                 "' is not a date, such as 2026-11-25, or an RFC 3339 time");
}

std::string RestoreCommandFor(const Audit& audit, std::vector<TagDefinition> tags) {
  RestoreWords words{.registry = ChosenRegistry(), .auth_file = ChosenCredentialsFile()};
  if (audit.meta) {
    words.uuid = audit.meta->uuid;
    words.layout = audit.meta->layout;
    words.rack_bits = audit.meta->rack_bits;
    words.default_strategy = audit.meta->default_strategy;
    words.ids_since = audit.meta->ids_since;
  }
  words.tags = std::move(tags);
  return RestoreCommand(words);
}

Result<Output> RestoreAsFlagsSay(BlockingCoordinator& registry, const Words& words) {
  FIRN_TRY(CheckNumbers());
  FIRN_ASSIGN(const std::vector<SaidTag> tags, SaidTags(words));
  FIRN_ASSIGN(const Audit audit, ReadAudit(registry, SystemClock().Wall()));
  FIRN_ASSIGN(RestoreFacts facts, GatherFacts(audit));
  FIRN_ASSIGN(const ProviderReport said, TagHighsFromFlag());
  FIRN_TRY(CheckLostTags(audit, tags));
  const bool same_ids = !audit.meta || !facts.NewIdsSince(*audit.meta);
  if (!FLAGS_again && same_ids && FloorCovers(audit, facts)) {
    FIRN_ASSIGN(const bool covered, TagsCover(registry, tags, said));
    if (covered) return NothingNew(audit, facts);
  }
  Output output;
  std::vector<ProviderReport> reports = ReportsIn(audit);
  reports.push_back(said);
  facts.tags = [&](const MetaAsRead& frozen) -> Status {
    FIRN_TRY(RestoreTags(registry, frozen, tags, reports, FLAGS_tag_gap, output));
    return TellUnreadable(registry, output);
  };
  FIRN_ASSIGN(const RestoreReport report, RestoreCluster(registry, facts, SystemEntropy()));
  TellDone(report, output);
  WarnOfUnknown(report, !FLAGS_uuid.empty(), FLAGS_default_strategy, output);
  TellKnown(audit, facts.bounds.size() - audit.providers.size(), report, output);
  const std::string floor = FormatRfc3339(report.floor);
  output.text += "cluster " + report.uuid + (report.root_made ? " re-created" : " restored") +
                 "; ids start at " + floor +
                 " or later; servers with --clock_policy=strict refuse requests until then\n";
  return output;
}

Verb RestoreVerb() {
  return {
      .name = "restore",
      .arguments = "[TAG=START[,KEY=VALUE...]]...",
      .summary = "lifts a cluster that lost data above everything that may have been issued",
      .details =
          "For a registry that was wiped, rolled back or restored from a backup. While the\n"
          "cluster is frozen, it lifts every tag's ledger, sets the floor of machine ids,\n"
          "retires poisoned slots and repairs damaged nodes; then it permits claims again. An\n"
          "argument defines a tag whose node is lost, or whose last edit is lost: its next\n"
          "number, and its fields. Running servers print the whole command in their log and as\n"
          "`trouble` in /v1/status: paste it. Repeating the command without new facts changes\n"
          "nothing.\n"
          "If the root node is lost, give --uuid, because servers refuse another cluster. The\n"
          "re-created cluster has the tag default, as after firn init, unless an argument\n"
          "defines it. A wiped registry has also lost the servers' reports: pass the bounds in\n"
          "/v1/status of servers that still run with --bound_ms. After an earlier restore ids\n"
          "run ahead of all clocks: pass that restore's floor plus the time since then, too,\n"
          "and the largest clock error in any alarm with --skew_max_ms.\n"
          "Programs that embed Firn report nothing: only the gap, and the servers' reports of\n"
          "their ranges, cover them. Pass what users' records show of a tag with --tag_high.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "uuid", "default_strategy", "ids_since", "layout", "rack_bits",
                "workers", "claim_window_ms", "skew_max_ms", "bound_ms", "retire", "reserve",
                "tag_high", "tag_gap", "again"},
      .run = RunRestore};
}

}  // namespace firn
