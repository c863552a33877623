#include "registry/operate/upgrade.h"

#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/slot.h"
#include "registry/servers/provider.h"

namespace firn {
namespace {

// Collects the programs that do not support the new format, as text.
class Elders {
 public:
  Elders(BlockingCoordinator& registry, int64_t to) : registry_(registry), to_(to) {}

  Status AddProviders() {
    FIRN_ASSIGN(const auto names, Children(std::string(kProvidersPath)));
    for (const std::string& name : names) {
      FIRN_ASSIGN(const auto node, Find(std::string(kProvidersPath) + "/" + name));
      if (!node) continue;
      const Result<Provider> provider = ParseProviderNodeName(name);
      const Result<ProviderReport> report = ParseReport(*node);
      const std::string who =
          provider.ok() ? provider->address + " (" + provider->build + ")" : name;
      Weigh(who, report.ok() ? report->format : 0);
    }
    return {};
  }

  // Programs that embed Firn without a server announce only their claim.
  Status AddHolders() {
    FIRN_ASSIGN(const auto racks, Children(std::string(kMachinesPath)));
    for (const std::string& rack : racks) {
      FIRN_ASSIGN(const auto workers, Children(std::string(kMachinesPath) + "/" + rack));
      for (const std::string& worker : workers) FIRN_TRY(AddHolder(rack, worker));
    }
    return {};
  }

  Status Verdict() const {
    if (elders_.empty()) return {};
    return Conflict(Cat("these programs do not support format ", to_, ": ", elders_,
                        "; upgrade or stop them, then try again"));
  }

 private:
  Result<std::vector<std::string>> Children(const std::string& path) {
    auto names = registry_.List(path);
    if (names.code() == Code::kNotFound) return std::vector<std::string>();
    return names;
  }

  Result<std::optional<std::string>> Find(const std::string& path) {
    Result<Node> node = registry_.Read(path);
    if (node.code() == Code::kNotFound) return std::optional<std::string>();
    if (!node.ok()) return node.status();
    return std::optional(std::move(node->data));
  }

  Status AddHolder(const std::string& rack, const std::string& worker) {
    FIRN_ASSIGN(const auto live,
                Find(std::string(kMachinesPath) + "/" + rack + "/" + worker + "/live"));
    if (!live) return {};
    const Result<LiveMark> mark = ParseLiveMark(*live);
    Weigh((mark.ok() ? mark->endpoint : "a holder") + " in rack " + rack + " worker " + worker,
          mark.ok() ? mark->format : 0);
    return {};
  }

  void Weigh(const std::string& who, int64_t format) {
    if (format >= to_) return;
    elders_ += (elders_.empty() ? "" : ", ") + who;
  }

  BlockingCoordinator& registry_;
  const int64_t to_;
  std::string elders_;
};

}  // namespace

Result<UpgradeReport> UpgradeCluster(BlockingCoordinator& registry, int64_t to) {
  FIRN_ASSIGN(MetaAsRead stands, ReadMeta(registry));
  const int64_t from = stands.meta.format;
  if (from >= to) return UpgradeReport{from, from};
  if (stands.meta.frozen) return Conflict(WhyFrozen(stands.meta));
  Elders elders(registry, to);
  FIRN_TRY(elders.AddProviders());
  FIRN_TRY(elders.AddHolders());
  FIRN_TRY(elders.Verdict());
  stands.meta.format = to;
  FIRN_TRY(SetMeta(registry, stands));
  return UpgradeReport{from, to};
}

}  // namespace firn
