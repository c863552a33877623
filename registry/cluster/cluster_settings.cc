#include "registry/cluster/cluster_settings.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/json/json_object.h"
#include "common/tag/tag_name.h"
#include "registry/cluster/slot.h"

namespace firn {
namespace {

constexpr int kTriesMax = 20;  // other servers raise it at the same time
constexpr size_t kSettingsBytesMax = 8192;
constexpr size_t kPrefixesBytesMax = 1000;

// Returns the next prefix, and removes it from `prefixes`.
std::string_view NextPrefix(std::string_view& prefixes) {
  const size_t end = std::min(prefixes.find(','), prefixes.size());
  const std::string_view next = prefixes.substr(0, end);
  prefixes.remove_prefix(std::min(end + 1, prefixes.size()));
  return next;
}

Result<CounterSetting> ReadCounters(const Json& object) {
  CounterSetting counters;
  std::string era;
  JsonReader read(object);
  read.Text("era", era)
      .Number("start", counters.start, 1)
      .Text("prefixes", counters.prefixes, kPrefixesBytesMax);
  FIRN_TRY(read.status());
  FIRN_ASSIGN(counters.era, Nonce::Parse(era));
  return counters;
}

// Returns the writes that replace the node if it has not changed since it was read.
std::vector<Write> Storing(const Result<Node>& node, const ClusterSettings& settings,
                           const Nonce& era) {
  const std::string text = FormatClusterSettings(settings);
  const bool absent = node.code() == Code::kNotFound;
  const int64_t version = node.ok() ? node->stat.version : Write::kAnyVersion;
  return {absent ? Write::Create(kSettingsPath, text, Lifetime::kPersistent)
                 : Write::Set(kSettingsPath, text, version),
          EraCheck(era)};
}

}  // namespace

bool CounterSetting::Covers(std::string_view name) const {
  std::string_view left = prefixes;
  while (!left.empty()) {
    if (name.starts_with(NextPrefix(left))) return true;
  }
  return prefixes.empty();
}

Status CheckPrefixes(std::string_view prefixes) {
  if (prefixes.size() > kPrefixesBytesMax) return Invalid("the prefixes are too long");
  while (!prefixes.empty()) {
    const std::string_view prefix = NextPrefix(prefixes);
    FIRN_TRY(CheckTagName(prefix).WithContext("a prefix"));
  }
  return {};
}

std::string FormatClusterSettings(const ClusterSettings& settings) {
  JsonWriter write;
  write.Number("claim_window_ms", settings.window.count());
  if (settings.lease_share) write.Number("lease_share", *settings.lease_share);
  if (settings.counters) {
    write.Object("counters", JsonWriter()
                                 .Text("era", settings.counters->era.text())
                                 .Number("start", settings.counters->start)
                                 .Text("prefixes", settings.counters->prefixes)
                                 .Done());
  }
  return write.Others(settings.others).Done();
}

Result<ClusterSettings> ParseClusterSettings(std::string_view json) {
  ClusterSettings settings;
  int64_t window = settings.window.count(), lease_share = -1;
  JsonReader read(json, kSettingsBytesMax);
  read.NumberIfAny("claim_window_ms", window, 0, ClusterSettings::kWindowMax.count())
      .NumberIfAny("lease_share", lease_share, 0, 100);
  const Json* const counters = read.Take("counters");
  read.Others(settings.others);
  FIRN_TRY(read.status().WithContext("the cluster's settings"));
  if (counters != nullptr) {
    FIRN_ASSIGN(settings.counters, ReadCounters(*counters));
  }
  settings.window = Milliseconds(window);
  if (lease_share >= 0) settings.lease_share = lease_share;
  return settings;
}

Result<ClusterSettings> SettingsIn(const Result<Node>& node) {
  if (node.ok()) {
    Result<ClusterSettings> settings = ParseClusterSettings(node->data);
    if (!settings.ok()) return ClusterSettings();
    settings->version = node->stat.version;
    return settings;
  }
  const bool of_node = node.code() == Code::kNotFound || node.code() == Code::kCorrupt;
  return of_node ? Result<ClusterSettings>(ClusterSettings()) : node.status();
}

Result<ClusterSettings> ReadClusterSettings(BlockingCoordinator& registry) {
  return SettingsIn(registry.Read(kSettingsPath));
}

Task<Result<ClusterSettings>> RaiseWindow(AsyncRegistry* registry, Milliseconds window, Nonce era) {
  const std::string path = kSettingsPath;
  Status done;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    Result<Node> node = co_await registry->Read(path);
    Result<ClusterSettings> settings = SettingsIn(node);
    if (!settings.ok() || settings->window >= window) co_return settings;
    settings->window = window;
    const std::vector<Write> writes = Storing(node, *settings, era);
    Written answer = co_await registry->Multi(writes);
    if (answer.status.ok()) co_return settings;
    done = std::move(answer.status);
    if (answer.fate != Written::Fate::kRefused) break;
  }
  co_return done;
}

Result<ClusterSettings> ChangeSettings(BlockingCoordinator& registry, const Nonce& era,
                                       const std::function<void(ClusterSettings&)>& change) {
  const Result<Node> node = registry.Read(kSettingsPath);
  FIRN_ASSIGN(const ClusterSettings before, SettingsIn(node));
  ClusterSettings settings = before;
  change(settings);
  if (settings == before) return settings;
  const Status stored = registry.Multi(Storing(node, settings, era)).status;
  // The node of another era is gone.
  if (stored.code() == Code::kNotFound) return Conflict("the cluster's era has ended");
  FIRN_TRY(stored);
  return settings;
}

}  // namespace firn
