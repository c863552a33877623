#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"
#include "registry/cluster/cluster_settings.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/first_use.h"
#include "registry/cluster/tag_store.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/tag_changes.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

constexpr std::string_view kOff = "none";
constexpr int64_t kStartMax = int64_t{1} << 52;  // INCR refuses numbers from 2^53
constexpr int kTriesMax = 5;                     // servers record their windows at the same time

// The settings that the command's words change.
struct Changes {
  std::optional<int64_t> lease_share{};
  std::optional<std::string> default_strategy{};  // kCounterStrategy or kOff
  std::optional<int64_t> counter_start{};
  std::optional<std::string> counter_prefixes{};

  bool any() const { return lease_share || default_strategy; }
};

Status ReadChange(std::string_view key, std::string_view value, Changes& changes) {
  if (key == "lease_share") {
    changes.lease_share = ParseNumberWithin<int64_t>(value, 0, 100);
    if (changes.lease_share) return {};
    return Invalid("lease_share must be a whole number from 0 to 100, in percent");
  }
  if (key == "default_strategy") {
    if (value != kCounterStrategy && value != kOff)
      return Invalid("default_strategy must be counter or none");
    changes.default_strategy = value;
    return {};
  }
  if (key == "counter_start") {
    changes.counter_start = ParseNumberWithin<int64_t>(value, 1, kStartMax);
    if (changes.counter_start) return {};
    return Invalid(Cat("counter_start must be a whole number from 1 to ", kStartMax));
  }
  if (key == "counter_prefixes") {
    changes.counter_prefixes = value;
    return CheckPrefixes(value);
  }
  return Invalid(Cat(Quoted(key), " is not a setting that can be changed; " +
                                      PrintCommand(PrintedCommand::kSet, {"--help"}) +
                                      " lists those that can"));
}

Result<Changes> ReadChanges(const std::vector<std::string>& words) {
  Changes changes;
  for (const std::string& word : words) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos) return Invalid(Cat(Quoted(word), " has no ="));
    const std::string_view value = std::string_view(word).substr(equals + 1);
    FIRN_TRY(ReadChange(std::string_view(word).substr(0, equals), value, changes));
  }
  const bool on = changes.default_strategy == kCounterStrategy;
  if (!on && (changes.counter_start || changes.counter_prefixes)) {
    return Invalid("counter_start and counter_prefixes need default_strategy=counter beside them");
  }
  return changes;
}

// Returns the largest number of any ledger, for an error message.
Result<int64_t> LargestLedger(BlockingCoordinator& registry) {
  FIRN_ASSIGN(const TagListing listing, TagStore(registry).ReadAll());
  int64_t largest = 0;
  for (const StoredTag& stored : listing.tags) largest = std::max(largest, stored.tag().high);
  return largest;
}

// Counters that were lost with the registry's data may have issued numbers.
Status CheckStart(BlockingCoordinator& registry, const ClusterMeta& meta, const Changes& changes) {
  if (changes.default_strategy != kCounterStrategy) return {};
  if (!meta.default_strategy.empty()) {
    return Invalid(
        "this cluster serves undefined tags as snowflake tags, so plain ids may be in "
        "use under any name");
  }
  if (meta.floor == WallMs()) return {};
  FIRN_ASSIGN(const ClusterSettings now, ReadClusterSettings(registry));
  const bool valid = now.counters && now.counters->era == meta.era;
  if (valid && changes.counter_start.value_or(now.counters->start) >= now.counters->start) {
    return {};
  }
  FIRN_ASSIGN(const int64_t largest, LargestLedger(registry));
  if (!valid && changes.counter_start.value_or(0) > largest) return {};
  return Invalid(
      Cat("this cluster was restored, and lost counters may have issued numbers: add "
          "counter_start=N, above all of them; the largest ledger is at ",
          largest));
}

// Fails while a server runs that refuses the tags which a first use creates.
Status CheckServers(BlockingCoordinator& registry, const Changes& changes) {
  if (changes.default_strategy != kCounterStrategy) return {};
  TagDefinition counter{.name = "counter", .strategy = "segment"};
  counter.buffer = TagBuffer::kOwner;
  Status servable = CheckServable(registry, {}, {counter});
  if (servable.code() != Code::kInvalid) return servable;
  return Invalid("a running server of version 0.1 would refuse such tags; upgrade it first: " +
                 PrintCommand(PrintedCommand::kServers) + " shows the versions");
}

void Apply(const Changes& changes, const Nonce& era, ClusterSettings& settings) {
  if (changes.lease_share) settings.lease_share = changes.lease_share;
  if (changes.default_strategy == kOff) settings.counters.reset();
  if (changes.default_strategy != kCounterStrategy) return;
  const CounterSetting before = settings.counters.value_or(CounterSetting{});
  settings.counters =
      CounterSetting{.era = era,
                     .start = changes.counter_start.value_or(before.start),
                     .prefixes = changes.counter_prefixes.value_or(before.prefixes)};
}

Result<ClusterSettings> Change(BlockingCoordinator& registry, const Changes& changes) {
  Result<ClusterSettings> changed = ClusterSettings();
  for (int tries = 0; tries < kTriesMax; ++tries) {
    FIRN_ASSIGN(const MetaAsRead root, ReadMeta(registry));
    if (root.meta.frozen) return Conflict(WhyFrozen(root.meta));
    FIRN_TRY(CheckStart(registry, root.meta, changes));
    changed = ChangeSettings(registry, root.meta.era, [&](ClusterSettings& settings) {
      Apply(changes, root.meta.era, settings);
    });
    if (changed.code() != Code::kConflict) break;
  }
  return changed;
}

Result<Output> RunSet(const std::vector<std::string>& words) {
  FIRN_ASSIGN(const Changes changes, ReadChanges(words));
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  BlockingCoordinator& registry = session.registry();
  const Result<MetaAsRead> root = ReadMeta(registry);
  if (root.code() == Code::kNotFound) return NotFound("there is no cluster here");
  if (!root.ok()) return root.status();
  FIRN_TRY(CheckServers(registry, changes));
  FIRN_ASSIGN(const ClusterSettings settings,
              changes.any() ? Change(registry, changes) : ReadClusterSettings(registry));
  const int64_t created = ReadCountersCreated(registry.Read(kCountersPath)).value_or(0);
  const int64_t share = settings.LeaseShareUnder(root->meta);
  const std::optional<CounterSetting>& counters = settings.counters;
  const bool valid = counters && counters->era == root->meta.era;
  Output output{
      .json = {{"lease_share", share}, {"claim_window_ms", settings.window.count()}},
      .text = Cat("lease_share      ", share, "\nclaim_window_ms  ", settings.window.count(),
                  "  (the largest of any server; servers record it)\n")};
  output.json["default_strategy"] =
      valid ? std::string(kCounterStrategy) : root->meta.default_strategy;
  output.json["counters_created"] = created;
  if (valid) {
    output.json["counter_start"] = counters->start;
    output.json["counter_prefixes"] = counters->prefixes;
    output.text += Cat("default_strategy counter  (", created, " of ", kCountersMax,
                       " names created)\ncounter_start    ", counters->start, "\n");
    if (!counters->prefixes.empty()) {
      output.text += Cat("counter_prefixes ", counters->prefixes, "\n");
    }
  } else if (counters) {
    output.text += "default_strategy none  (counter until the cluster was restored)\n";
  }
  return output;
}

}  // namespace

Verb SetVerb() {
  return {
      .name = "set",
      .arguments = "[lease_share=PERCENT] [default_strategy=counter|none]",
      .summary = "changes a setting of the cluster while it runs, or shows the settings",
      .details =
          "lease_share: the part of each rack's machine ids that can be leased to programs:\n"
          "those with the highest workers. Claims and leases continue, and no id is delayed.\n"
          "The next lease uses the new share. Servers of 0.1 use the share that firn init or\n"
          "firn restore has set.\n"
          "default_strategy=counter: a name that is not defined becomes a tag at its first\n"
          "use, strategy=segment buffer=owner, so that INCR of any key works. none ends that;\n"
          "the tags stay. With it: counter_start=N, the first number of each (1), and\n"
          "counter_prefixes=A,B, the names for which this counts (all). At most 5,000 tags are\n"
          "created so. After a restore set it again, with counter_start. Refused while a\n"
          "server of 0.1 runs, which would refuse these tags.\n",
      .flags = {FIRN_REGISTRY_FLAGS},
      .run = RunSet};
}

}  // namespace firn
