#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <gflags/gflags.h>

#include "common/civil_time.h"
#include "common/clock.h"
#include "common/entropy.h"
#include "registry/audit.h"
#include "registry/cluster_setup.h"
#include "registry/restore.h"
#include "registry/tag_store.h"
#include "tools/firn/id_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/verbs.h"

DEFINE_bool(brand_new, false, "nobody has ever issued ids under this name: begin without a floor");
DEFINE_string(uuid, "", "of the lost cluster that is made anew; servers' state folders name it");
DEFINE_int32(workers, 0,
             "machine ids of each rack to make records for; 0: as many as there are, or all of the "
             "layout");
DEFINE_int64(claim_window_ms, 600'000, "the largest --claim_window of any server, in ms");
DEFINE_int64(skew_max_ms, 10'000, "the largest clock skew of any server that is known");
DEFINE_int64(tag_gap, 1'000'000, "how far segment tags jump beyond all that is known");

namespace firn {
namespace {

using Words = std::vector<std::string>;

std::optional<uint32_t> ChosenWorkers() {
  if (FLAGS_workers <= 0) return std::nullopt;
  return static_cast<uint32_t>(FLAGS_workers);
}

// What the tree, and the servers that have announced themselves in it, know of a lost past.
Result<RestoreFacts> GatherFacts(const Audit& audit) {
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  if (!FLAGS_uuid.empty() && !IsUuid(FLAGS_uuid)) return Invalid("--uuid: not a uuid");
  if (!FLAGS_uuid.empty() && audit.meta && audit.meta->uuid != FLAGS_uuid) {
    return Conflict("the cluster that is here is " + audit.meta->uuid);
  }
  RestoreFacts facts{.now = SystemClock().Wall(),
                     .window = Milliseconds(FLAGS_claim_window_ms),
                     .skew_max = Milliseconds(FLAGS_skew_max_ms),
                     .uuid = FLAGS_uuid,
                     .layout = choice.layout,
                     .rack_bits = choice.split.rack_bits(),
                     .workers = ChosenWorkers()};
  for (const AuditedProvider& provider : audit.providers) {
    facts.bounds.push_back(provider.report.bound);
    facts.skew_max =
        std::max(facts.skew_max, std::chrono::abs(Milliseconds(provider.report.clock_skew_ms)));
  }
  return facts;
}

// The highest ledger of each tag that any server has seen.
std::map<std::string, int64_t> ReportedLedgers(const Audit& audit) {
  std::map<std::string, int64_t> highest;
  for (const AuditedProvider& provider : audit.providers) {
    for (const auto& [tag, high] : provider.report.high) {
      highest[tag] = std::max(highest[tag], high);
    }
  }
  return highest;
}

// Every segment tag's ledger goes above the tree and the reports; a tag whose node is lost is only
// named, since nothing tells what it was.
Status LiftTags(BlockingCoordinator& registry, std::map<std::string, int64_t> reported,
                Output& output) {
  TagStore store(registry);
  FIRN_ASSIGN(const TagListing listing, store.ReadAll());
  auto& lifted = output.json["tags"] = nlohmann::ordered_json::array();
  for (const StoredTag& stored : listing.tags) {
    const TagDefinition& tag = stored.tag();
    const int64_t known = std::max(tag.high, reported[tag.name]);
    reported.erase(tag.name);
    if (known == 0) continue;
    const int64_t high = known > INT64_MAX - FLAGS_tag_gap ? INT64_MAX : known + FLAGS_tag_gap;
    FIRN_TRY(store.Lift(stored, high));
    lifted.push_back({{"tag", tag.name}, {"high", std::to_string(high)}});
    output.text += "tag " + tag.name + " goes on from " + std::to_string(high) + "\n";
  }
  for (const auto& [name, high] : reported) {
    output.wrong = true;
    output.text += "WRONG: the node of tag " + name +
                   " is lost; make it anew with start=" + std::to_string(high + FLAGS_tag_gap) +
                   " or more\n";
    lifted.push_back({{"tag", name}, {"lost", true}, {"seen", std::to_string(high)}});
  }
  output.wrong |= !listing.faults.empty();
  for (const std::string& fault : listing.faults) output.text += "WRONG: " + fault + "\n";
  return {};
}

Result<Output> Restore(BlockingCoordinator& registry) {
  FIRN_ASSIGN(const Audit audit, ReadAudit(registry, SystemClock().Wall()));
  FIRN_ASSIGN(const RestoreFacts facts, GatherFacts(audit));
  Output output;
  if (audit.meta) FIRN_TRY(LiftTags(registry, ReportedLedgers(audit), output));
  FIRN_ASSIGN(const RestoreReport report, RestoreCluster(registry, facts, SystemEntropy()));
  output.json["uuid"] = report.uuid;
  output.json["floor_ms"] = report.floor.ms();
  output.json["root_made"] = report.root_made;
  auto& retired = output.json["retired"] = nlohmann::ordered_json::array();
  for (const Slot& slot : report.retired) {
    retired.push_back(SlotText(slot));
    output.text += "retired " + SlotText(slot) + "\n";
  }
  output.text += "cluster " + report.uuid + (report.root_made ? " made anew" : " restored") +
                 "; machine ids begin at " + FormatRfc3339(report.floor) + " at the earliest\n";
  return output;
}

Result<Output> RunRestore(const Words& words) {
  if (!words.empty()) return Invalid("restore takes no arguments");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  return Restore(session.registry());
}

Result<Output> RunInit(const Words& words) {
  if (!words.empty()) return Invalid("init takes no arguments");
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  BlockingCoordinator& registry = session.registry();
  FIRN_TRY(registry.PrepareRoot());
  const auto meta = ReadMeta(registry);
  const bool absent = meta.code() == Code::kNotFound;
  if (!absent && !meta.ok()) return meta.status();
  if (absent && !FLAGS_brand_new) return Restore(registry);

  FIRN_TRY(MakeCluster(
      registry,
      {.layout = choice.layout, .rack_bits = choice.split.rack_bits(), .workers = ChosenWorkers()},
      SystemEntropy()));
  FIRN_ASSIGN(const MetaAsRead made, ReadMeta(registry));
  return Output{.json = {{"uuid", made.meta.uuid}, {"layout", made.meta.layout}},
                .text = "cluster " + made.meta.uuid + " made, layout " + made.meta.layout + "\n"};
}

}  // namespace

Verb InitVerb() {
  return {.name = "init",
          .summary = "makes a cluster where there is none",
          .details =
              "Without --brand_new it does what restore does: nobody can tell an empty "
              "registry from one\nthat has lost everything, and servers may still be "
              "issuing under the old one.\n",
          .flags = {FIRN_REGISTRY_FLAGS, "brand_new", "uuid", "layout", "rack_bits", "workers",
                    "claim_window_ms", "skew_max_ms"},
          .run = RunInit};
}

Verb RestoreVerb() {
  return {.name = "restore",
          .summary = "lifts a cluster that lost data above everything that may have been issued",
          .details =
              "For a registry that was wiped, rolled back or restored from a backup. Lifts "
              "every tag's\nledger, sets the floor of machine ids, retires poisoned slots, "
              "and lets claims begin again.\nMay be repeated. Where "
              "everything is gone, give --uuid: servers refuse a cluster that is not "
              "theirs.\n",
          .flags = {FIRN_REGISTRY_FLAGS, "uuid", "layout", "rack_bits", "workers",
                    "claim_window_ms", "skew_max_ms", "tag_gap"},
          .run = RunRestore};
}

}  // namespace firn
