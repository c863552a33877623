#include "registry/cluster/cluster_settings.h"

#include <utility>
#include <vector>

#include "common/json/json_object.h"
#include "registry/cluster/slot.h"

namespace firn {
namespace {

constexpr int kTriesMax = 20;  // other servers raise it at the same time
constexpr size_t kSettingsBytesMax = 8192;

// The writes that raise the window in the node as read; none if it is high enough.
std::vector<Write> Raising(const Result<Node>& node, Milliseconds window, const Nonce& era) {
  ClusterSettings settings;
  if (node.ok()) settings = ParseClusterSettings(node->data).value_or({});
  if (settings.window >= window) return {};
  settings.window = window;
  const std::string text = FormatClusterSettings(settings);
  const bool absent = node.code() == Code::kNotFound;
  const int64_t version = node.ok() ? node->stat.version : Write::kAnyVersion;
  return {absent ? Write::Create(kSettingsPath, text, Lifetime::kPersistent)
                 : Write::Set(kSettingsPath, text, version),
          EraCheck(era)};
}

bool IsReadable(const Result<Node>& node) {
  return node.ok() || node.code() == Code::kNotFound || node.code() == Code::kCorrupt;
}

}  // namespace

std::string FormatClusterSettings(const ClusterSettings& settings) {
  return JsonWriter()
      .Number("claim_window_ms", settings.window.count())
      .Others(settings.others)
      .Done();
}

Result<ClusterSettings> ParseClusterSettings(std::string_view json) {
  ClusterSettings settings;
  int64_t window = settings.window.count();
  JsonReader read(json, kSettingsBytesMax);
  read.NumberIfAny("claim_window_ms", window, 0, ClusterSettings::kWindowMax.count())
      .Others(settings.others);
  FIRN_TRY(read.status().WithContext("the cluster's settings"));
  settings.window = Milliseconds(window);
  return settings;
}

Result<ClusterSettings> ReadClusterSettings(BlockingCoordinator& registry) {
  const Result<Node> node = registry.Read(kSettingsPath);
  if (!IsReadable(node)) return node.status();
  return node.ok() ? ParseClusterSettings(node->data).value_or({}) : ClusterSettings();
}

Task<Status> RaiseWindow(AsyncRegistry* registry, Milliseconds window, Nonce era) {
  if (window <= ClusterSettings::kUsualWindow) co_return Status();
  const std::string path = kSettingsPath;
  Status done;
  for (int tries = 0; tries < kTriesMax; ++tries) {
    Result<Node> node = co_await registry->Read(path);
    if (!IsReadable(node)) co_return node.status();
    const std::vector<Write> writes = Raising(node, window, era);
    if (writes.empty()) co_return Status();
    Written answer = co_await registry->Multi(writes);
    done = std::move(answer.status);
    if (done.ok() || answer.fate != Written::Fate::kRefused) break;
  }
  co_return done;
}

Status RaiseWindow(BlockingCoordinator& registry, Milliseconds window, const Nonce& era) {
  if (window <= ClusterSettings::kUsualWindow) return {};
  const Result<Node> node = registry.Read(kSettingsPath);
  if (!IsReadable(node)) return node.status();
  std::vector<Write> writes = Raising(node, window, era);
  return writes.empty() ? Status() : registry.Multi(std::move(writes)).status;
}

}  // namespace firn
