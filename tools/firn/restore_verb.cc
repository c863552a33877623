#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "common/civil_time.h"
#include "common/clock.h"
#include "common/entropy.h"
#include "common/tag_name.h"
#include "registry/audit.h"
#include "registry/claim/claim_options.h"
#include "registry/restore.h"
#include "tools/firn/id_words.h"
#include "tools/firn/ledger_lift.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore_steps.h"
#include "tools/firn/verbs.h"

DEFINE_string(uuid, "", "of the lost cluster that is made anew; servers' state folders name it");
DEFINE_int32(workers, 0,
             "machine ids of each rack to make records for; 0: as many as there are, or all of the "
             "layout");
DEFINE_int64(claim_window_ms, 600'000, "the largest --claim_window_ms of any server");
DEFINE_int64(skew_max_ms, 10'000, "the largest clock skew of any server that is known");
DEFINE_string(bound_ms, "",
              "further bounds to lift the floor above, in ms since 1970 and with commas between "
              "them: of /v1/status of servers that the registry does not show");
DEFINE_string(tag_high, "",
              "the highest numbers that are known to have been given, by users' records, as "
              "tag=number with commas between them; tags as in paths");
DEFINE_int64(tag_gap, 1'000'000,
             "how far segment tags jump beyond all that is known; of each tag at least twice its "
             "step_max");

namespace firn {
namespace {

using Words = std::vector<std::string>;

Status CheckNumbers() {
  constexpr int64_t kYear = int64_t{366} * 86'400'000;
  if (FLAGS_tag_gap < 0) return Invalid("--tag_gap: a ledger is lifted, never lowered");
  for (const auto& [name, ms] : {std::pair("--claim_window_ms", FLAGS_claim_window_ms),
                                 std::pair("--skew_max_ms", FLAGS_skew_max_ms)}) {
    if (ms < 0 || ms > kYear) return Invalid(std::string(name) + " is 0 ms to a year");
  }
  return {};
}

Result<std::vector<WallMs>> SaidBounds() {
  std::vector<WallMs> bounds;
  std::string_view rest = FLAGS_bound_ms;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    int64_t ms = 0;
    const auto [end, error] = std::from_chars(word.begin(), word.end(), ms);
    if (error != std::errc() || end != word.end() || ms < 0) {
      return Invalid("--bound_ms: '" + std::string(word) + "' is no moment in ms");
    }
    bounds.emplace_back(ms);
  }
  return bounds;
}

// What --tag_high says, as if a server had said it.
Result<ProviderReport> SaidHighs() {
  ProviderReport said;
  std::string_view rest = FLAGS_tag_high;
  while (!rest.empty()) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    const size_t equals = std::min(word.rfind('='), word.size());
    const Result<std::string> tag = DecodeTagName(word.substr(0, equals));
    const std::string_view digits = word.substr(std::min(equals + 1, word.size()));
    int64_t number = 0;
    const auto [end, error] = std::from_chars(digits.begin(), digits.end(), number);
    if (!tag.ok() || error != std::errc() || end != digits.end() || number < 1 ||
        number == INT64_MAX) {
      return Invalid("--tag_high: '" + std::string(word) + "' is no tag=number");
    }
    int64_t& high = said.high[*tag];
    high = std::max(high, number + 1);
  }
  return said;
}

// What was known, so that an operator sees what was not.
void TellKnown(const Audit& audit, size_t said, const RestoreReport& report, Output& output) {
  output.text += "known besides the tree: " + std::to_string(audit.providers.size()) +
                 " servers in it, " + std::to_string(said) + " bounds of --bound_ms\n";
  output.json["servers"] = audit.providers.size();
  for (const auto& [provider, told] : audit.providers) {
    if (std::chrono::abs(Milliseconds(told.clock_skew_ms)) <= kPoisonAhead) continue;
    output.wrong = true;
    output.text += "WRONG: " + provider.address + " says that its clock is off by " +
                   std::to_string(told.clock_skew_ms) + " ms, and the floor does not count it\n";
  }
  auto& ignored = output.json["ignored_bounds_ms"] = nlohmann::ordered_json::array();
  for (const WallMs bound : report.ignored) {
    output.wrong = true;
    ignored.push_back(bound.ms());
    output.text += "WRONG: a bound of " + std::to_string(bound.ms()) +
                   " ms lies more than a day ahead, and the floor does not count it\n";
  }
}

bool IsSaid(const char* flag) {
  gflags::CommandLineFlagInfo info;
  return gflags::GetCommandLineFlagInfo(flag, &info) && !info.is_default;
}

// What the tree, and the servers that have announced themselves in it, know of a lost past.
Result<RestoreFacts> GatherFacts(const Audit& audit) {
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  if (!FLAGS_uuid.empty() && !IsUuid(FLAGS_uuid)) return Invalid("--uuid: not a uuid");
  if (!FLAGS_uuid.empty() && audit.meta && audit.meta->uuid != FLAGS_uuid) {
    return Conflict("the cluster that is here is " + audit.meta->uuid);
  }
  if (!FLAGS_uuid.empty() && !audit.meta && !IsSaid("layout")) {
    return Invalid("the cluster's root node is gone: say with --layout which layout it had");
  }
  FIRN_ASSIGN(const std::vector<WallMs> said, SaidBounds());
  RestoreFacts facts{.now = SystemClock().Wall(),
                     .window = Milliseconds(FLAGS_claim_window_ms),
                     .skew_max = Milliseconds(FLAGS_skew_max_ms),
                     .clock_skew_max = Milliseconds(FLAGS_skew_max_ms),
                     .bounds = said,
                     .uuid = FLAGS_uuid,
                     .layout = choice.layout,
                     .rack_bits = choice.split.rack_bits(),
                     .workers = ChosenWorkers()};
  for (const AuditedProvider& provider : audit.providers) AddReport(provider.report, facts);
  return facts;
}

std::vector<ProviderReport> ReportsIn(const Audit& audit) {
  std::vector<ProviderReport> reports;
  for (const AuditedProvider& provider : audit.providers) reports.push_back(provider.report);
  return reports;
}

Result<Output> RunRestore(const Words& words) {
  if (!words.empty()) return Invalid("restore takes no arguments");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  return RestoreAsFlagsSay(session.registry());
}

}  // namespace

std::optional<uint32_t> ChosenWorkers() {
  if (FLAGS_workers <= 0) return std::nullopt;
  return static_cast<uint32_t>(FLAGS_workers);
}

Result<Output> RestoreAsFlagsSay(BlockingCoordinator& registry) {
  FIRN_TRY(CheckNumbers());
  FIRN_ASSIGN(const Audit audit, ReadAudit(registry, SystemClock().Wall()));
  FIRN_ASSIGN(const RestoreFacts facts, GatherFacts(audit));
  FIRN_ASSIGN(const ProviderReport said, SaidHighs());
  Output output;
  if (audit.meta) {
    std::vector<ProviderReport> reports = ReportsIn(audit);
    reports.push_back(said);
    FIRN_TRY(LiftLedgers(registry, reports, FLAGS_tag_gap, output));
  }
  FIRN_ASSIGN(const RestoreReport report, RestoreCluster(registry, facts, SystemEntropy()));
  output.json["uuid"] = report.uuid;
  output.json["floor_ms"] = report.floor.ms();
  output.json["root_made"] = report.root_made;
  auto& retired = output.json["retired"] = nlohmann::ordered_json::array();
  for (const Slot& slot : report.retired) {
    retired.push_back(SlotText(slot));
    output.text += "retired " + SlotText(slot) + "\n";
  }
  TellKnown(audit, facts.bounds.size() - audit.providers.size(), report, output);
  output.text += "cluster " + report.uuid + (report.root_made ? " made anew" : " restored") +
                 "; machine ids begin at " + FormatRfc3339(report.floor) + " at the earliest\n";
  return output;
}

Verb RestoreVerb() {
  return {
      .name = "restore",
      .summary = "lifts a cluster that lost data above everything that may have been issued",
      .details =
          "For a registry that was wiped, rolled back or restored from a backup. Lifts "
          "every tag's\nledger, sets the floor of machine ids, retires poisoned slots, "
          "and lets claims begin again.\nMay be repeated. Where "
          "everything is gone, give --uuid: servers refuse a cluster that is not "
          "theirs.\n"
          "Servers' own nodes go with a wiped registry: name what /v1/status of those still "
          "running shows\nby --bound_ms. Ids of a cluster that was restored before run ahead of "
          "all clocks: name the floor of\nthat restore plus the time since, too, and by "
          "--skew_max_ms the worst clock that alarms told of.\n"
          "Programs that embed Firn report nothing: only the gap, and what servers saw of "
          "their ranges,\ncovers them. What users' records show of a tag is said by "
          "--tag_high.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "uuid", "layout", "rack_bits", "workers", "claim_window_ms",
                "skew_max_ms", "bound_ms", "tag_high", "tag_gap"},
      .run = RunRestore};
}

}  // namespace firn
