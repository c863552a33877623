#include <algorithm>
#include <string>
#include <vector>

#include "registry/operate/audit.h"

namespace firn {

// By the registry's own clock: every server that lives writes, so the newest word is of now.
Status ReadPaces(BlockingCoordinator& registry, Audit& audit) {
  std::vector<std::string> paths;
  for (const AuditedProvider& server : audit.providers) {
    paths.push_back(PacePath(server.provider.address));
  }
  if (paths.empty()) return {};
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
    if (!pace.ok()) continue;
    const Milliseconds age = newest - nodes[i]->stat.modified;
    audit.paces.insert_or_assign(audit.providers[i].provider.address, AuditedPace{*pace, age});
  }
  return {};
}

}  // namespace firn
