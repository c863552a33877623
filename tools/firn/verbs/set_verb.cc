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
#include "tools/firn/registry_session.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

constexpr std::string_view kLeaseShare = "lease_share=";
constexpr int kTriesMax = 5;  // servers record their windows at the same time

Result<std::optional<int64_t>> LeaseShareIn(const std::vector<std::string>& words) {
  if (words.empty()) return std::optional<int64_t>();
  if (words.size() > 1 || !words.front().starts_with(kLeaseShare)) {
    return Invalid(Cat(Quoted(words.back()), " is not a setting that can be changed; use ",
                       PrintCommand(PrintedCommand::kSet, {Cat(kLeaseShare, "PERCENT")})));
  }
  const auto percent = ParseNumberWithin<int64_t>(
      std::string_view(words.front()).substr(kLeaseShare.size()), 0, 100);
  if (!percent) return Invalid("lease_share must be a whole number from 0 to 100, in percent");
  return percent;
}

Result<ClusterSettings> Change(BlockingCoordinator& registry, int64_t lease_share) {
  Result<ClusterSettings> changed = ClusterSettings();
  for (int tries = 0; tries < kTriesMax; ++tries) {
    FIRN_ASSIGN(const MetaAsRead root, ReadMeta(registry));
    if (root.meta.frozen) return Conflict(WhyFrozen(root.meta));
    const auto change = [lease_share](ClusterSettings& it) { it.lease_share = lease_share; };
    changed = ChangeSettings(registry, root.meta.era, change);
    if (changed.code() != Code::kConflict) break;
  }
  return changed;
}

Result<Output> RunSet(const std::vector<std::string>& words) {
  FIRN_ASSIGN(const std::optional<int64_t> lease_share, LeaseShareIn(words));
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  BlockingCoordinator& registry = session.registry();
  const Result<MetaAsRead> root = ReadMeta(registry);
  if (root.code() == Code::kNotFound) return NotFound("there is no cluster here");
  if (!root.ok()) return root.status();
  FIRN_ASSIGN(const ClusterSettings settings,
              lease_share ? Change(registry, *lease_share) : ReadClusterSettings(registry));
  const int64_t share = settings.LeaseShareUnder(root->meta);
  return Output{
      .json = {{"lease_share", share}, {"claim_window_ms", settings.window.count()}},
      .text = Cat("lease_share      ", share, "\nclaim_window_ms  ", settings.window.count(),
                  "  (the largest of any server; servers record it)\n")};
}

}  // namespace

Verb SetVerb() {
  return {.name = "set",
          .arguments = "[lease_share=PERCENT]",
          .summary = "changes a setting of the cluster while it runs, or shows the settings",
          .details =
              "lease_share: the part of each rack's machine ids that can be leased to programs:\n"
              "those with the highest workers. Claims and leases continue, and no id is delayed.\n"
              "The next lease uses the new share. Servers of 0.1 use the share that firn init or\n"
              "firn restore has set.\n",
          .flags = {FIRN_REGISTRY_FLAGS},
          .run = RunSet};
}

}  // namespace firn
