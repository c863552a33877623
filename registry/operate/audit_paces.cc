#include <algorithm>
#include <string>
#include <vector>

#include "registry/operate/audit.h"

namespace firn {

Status WantPaces(BlockingCoordinator& registry) {
  const Write sign = Write::Create(std::string(kPacesWantedPath), "", Lifetime::kEphemeral);
  WriteOutcome made = registry.Multi({sign});
  if (made.status.code() == Code::kNotFound) {
    const Write folder = Write::Create(std::string(kPacesPath), "", Lifetime::kPersistent);
    made = registry.Multi({folder, sign});
  }
  return made.status.code() == Code::kConflict ? Status() : made.status;
}

// Ages are by the registry's clock: every running server publishes, so the newest rates are
// current.
Status ReadPaces(BlockingCoordinator& registry, Audit& audit) {
  const Result<Node> sign = registry.Read(std::string(kPacesWantedPath));
  if (sign.code() == Code::kNotFound || sign.code() == Code::kCorrupt) return {};
  FIRN_TRY(sign.status());
  audit.paces_wanted_at = sign->stat.modified;
  std::vector<std::string> paths;
  for (const AuditedProvider& server : audit.providers) {
    paths.push_back(PacePath(server.provider.address));
  }
  const std::vector<Result<Node>> nodes = registry.ReadAll(paths);
  WallMs newest;
  for (const Result<Node>& node : nodes) {
    if (node.ok()) newest = std::max(newest, node->stat.modified);
  }
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Code code = nodes[i].code();
    if (code == Code::kNotFound || code == Code::kCorrupt) continue;
    FIRN_TRY(nodes[i].status());
    const Result<ServerPace> pace = ParsePace(nodes[i]->data);
    if (!pace.ok() || nodes[i]->stat.modified < sign->stat.modified) continue;
    const Milliseconds age = newest - nodes[i]->stat.modified;
    audit.paces.insert_or_assign(audit.providers[i].provider.address, AuditedPace{*pace, age});
  }
  return {};
}

}  // namespace firn
