#include <iostream>
#include <string>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/servers/provider.h"
#include "tools/firn/flag_words.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore/restore_facts.h"
#include "tools/firn/verbs/id_words.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_string(default_strategy, "",
              "Strategy of undefined tags in the new cluster: `snowflake`, and then no tag can "
              "be obfuscated, or empty to refuse them. Fixed for the cluster's life. Or `counter`: "
              "a name becomes a tag at its first use, see firn set.");
DEFINE_int32(workers, 0, "Number of machine ids per rack. 0: all of the layout.");
DEFINE_int32(lease_share, -1,
             "Share of each rack's machine ids that can be leased to programs, in percent: those "
             "with the highest workers. Servers claim these only if all others are in use. -1: 50. "
             "firn set changes it.");
DEFINE_bool(brand_new, false,
            "No server has ever issued ids in a cluster of this name, so start without a floor.");
DEFINE_bool(force, false, "Continue although a check failed whose message names --force.");

namespace firn {
namespace {

// Servers of a lost cluster announce themselves within 10 s of ZooKeeper being reachable again:
// they notice the loss within 2 to 4 s of a disconnection (ZkCoordinator), then find the root node.
constexpr Milliseconds kWaitFor{20'000};
constexpr Milliseconds kReadEvery{200};
// Interval of progress messages.
constexpr Milliseconds kTellEvery{10'000};

Status AskForAChoice() {
  return Invalid(
      "an empty registry looks like one that has lost everything; use --brand-new if no id was "
      "ever issued under this name, otherwise " +
      PrintCommand(PrintedCommand::kRestore) +
      " with --layout, which starts ids some 30 minutes ahead of all clocks. If servers of the "
      "cluster still run, use the command in their log instead");
}

// Returns a sentence about a server of another cluster that has registered here, or "".
Result<std::string> StrangerAmong(BlockingCoordinator& registry, const std::string& uuid) {
  const std::string folder(kProvidersPath);
  const auto names = registry.List(folder);
  if (names.code() == Code::kNotFound) return std::string();
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const Result<Node> node = registry.Read(folder + "/" + name);
    if (node.code() == Code::kUnavailable) return node.status();
    const Result<ProviderReport> report =
        node.ok() ? ParseReport(node->data) : Result<ProviderReport>(node.status());
    if (!report.ok() || report->cluster.empty() || report->cluster == uuid) continue;
    const Result<Provider> provider = ParseProviderNodeName(name);
    return (provider.ok() ? provider->address : name) + " belongs to cluster " + report->cluster;
  }
  return std::string();
}

// Returns kConflict if servers of another cluster run here: the registry has lost the data of that
// cluster, and its servers never serve under another uuid.
Status CheckNoForeignServers(BlockingCoordinator& registry) {
  FIRN_ASSIGN(const MetaAsRead made, ReadMeta(registry));
  const Clock& clock = SystemClock();
  const BootMs give_up = clock.Boot() + kWaitFor;
  std::cerr << "firn init: waiting " << kWaitFor.count() / 1000
            << " s for servers of an earlier cluster to announce themselves (--force skips this)\n";
  while (true) {
    FIRN_ASSIGN(const std::string unknown_peer, StrangerAmong(registry, made.meta.uuid));
    if (!unknown_peer.empty()) {
      return Conflict("no cluster was created: " + unknown_peer +
                      ", whose data were lost here. Its log and /v1/status show the " +
                      PrintCommand(PrintedCommand::kRestore) +
                      " command that repairs it; --force creates a new cluster anyway");
    }
    if (clock.Boot() >= give_up) return {};
    SleepFor(kReadEvery);
  }
}

// Returns the flags as answers of a restore.
std::vector<std::string> Answers() {
  std::vector<std::string> answers;
  if (FLAGS_workers != 0) answers.push_back(Cat("workers=", FLAGS_workers));
  if (FLAGS_lease_share != -1) answers.push_back(Cat("lease_share=", FLAGS_lease_share));
  return answers;
}

Result<Output> RunInit(const std::vector<std::string>& words) {
  if (!words.empty()) return Invalid("init takes no arguments");
  FIRN_ASSIGN(const LayoutChoice choice, ChosenLayout());
  FIRN_ASSIGN(const RestoreOptions options, ReadRestoreOptions(Answers()));
  FIRN_ASSIGN(RegistrySession session, RegistrySession::OpenOrCreate());
  BlockingCoordinator& registry = session.registry();
  FIRN_TRY(registry.PrepareRoot());
  const auto meta = ReadMeta(registry);
  const bool absent = meta.code() == Code::kNotFound;
  if (!absent && !meta.ok()) return meta.status();
  if (absent && !FLAGS_brand_new) return AskForAChoice();
  const bool counters = FLAGS_default_strategy == kCounterStrategy;
  ClusterPlan plan{.layout = choice.layout,
                   .rack_bits = choice.split.rack_bits(),
                   .workers = options.call.answers.workers,
                   .default_strategy = counters ? "" : FLAGS_default_strategy,
                   .ids_since = options.ids_since};
  plan.lease_share = options.call.answers.lease_share.value_or(plan.lease_share);
  BootMs told = SystemClock().Boot();
  plan.progress = [&told](uint32_t made, uint32_t of) {
    if (SystemClock().Boot() - told < kTellEvery) return;
    told = SystemClock().Boot();
    std::cerr << "firn init: created " << made << " of " << of << " machine ids\n";
  };
  // A directory needs no wait: its processes notice at once that the folder is gone.
  const bool may_be_waited_for = ChosenRegistry().starts_with("zk:") && !FLAGS_force;
  if (may_be_waited_for) plan.last_look = [&registry] { return CheckNoForeignServers(registry); };
  const Status done = MakeCluster(registry, plan, SystemEntropy());
  // Servers of another cluster may have frozen the new one before the last check found them.
  const bool disturbed = may_be_waited_for && absent && done.code() == Code::kConflict;
  if (disturbed) FIRN_TRY(CheckNoForeignServers(registry));
  FIRN_TRY(done);
  FIRN_ASSIGN(const MetaAsRead made, ReadMeta(registry));
  if (counters) {
    const auto change = [&](ClusterSettings& settings) {
      settings.counters = CounterSetting{.era = made.meta.era};
    };
    FIRN_TRY(ChangeSettings(registry, made.meta.era, change).status());
  }
  return Output{
      .json = {{"uuid", made.meta.uuid}, {"layout", made.meta.layout}},
      .text = "cluster " + made.meta.uuid + " created, layout " + made.meta.layout + "\n"};
}

}  // namespace

Verb InitVerb() {
  return {
      .name = "init",
      .summary = "creates a cluster",
      .details =
          "Requires --brand-new: an empty registry looks like one that has lost everything,\n"
          "and servers may still issue ids of the lost cluster. In ZooKeeper it waits 20 s for\n"
          "servers of a lost cluster to announce themselves; --force skips this wait.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "brand_new", "force", "default_strategy", "ids_since",
                "layout", "rack_bits", "workers", "lease_share"},
      .run = RunInit};
}

}  // namespace firn
