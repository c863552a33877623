#include <string_view>

#include "registry/cluster/slot.h"
#include "registry/operate/restore.h"
#include "registry/seam/requests.h"
#include "registry/servers/pace.h"
#include "registry/servers/provider.h"

namespace firn {
namespace {

using Paths = std::vector<std::string>;

// Empty if there is no such folder.
Result<Paths> ChildrenOf(BlockingCoordinator& registry, const std::string& folder) {
  const auto names = registry.List(folder);
  if (names.code() == Code::kNotFound) return Paths();
  if (!names.ok()) return names.status();
  Paths children;
  for (const std::string& name : *names) children.push_back(ChildPath(folder, name));
  return children;
}

// For folders and nodes without contents; a foreign node among them is emptied, too.
Write SetEmpty(const std::string& path) { return Write::Set(path, "", Write::kAnyVersion); }

// For nodes that their owners re-create, and nodes that are not needed.
Write EraseNode(const std::string& path) { return Write::Erase(path, Write::kAnyVersion); }

Status Repair(BlockingCoordinator& registry, const Nonce& era, const Paths& paths,
              Write (*repair)(const std::string&), Paths& repaired) {
  const std::vector<Result<Node>> nodes = registry.ReadAll(paths);
  for (size_t i = 0; i < paths.size(); ++i) {
    if (nodes[i].code() != Code::kCorrupt) continue;
    FIRN_TRY(registry.Multi({repair(paths[i]), EraCheck(era)})
                 .status.WithContext("repairing " + paths[i]));
    repaired.push_back(paths[i]);
  }
  return {};
}

}  // namespace

Result<Paths> RepairNodes(BlockingCoordinator& registry, const Nonce& era) {
  Paths repaired;
  for (const std::string& folder : {std::string(kMetaPath), std::string(kServicePath)}) {
    FIRN_ASSIGN(const Paths children, ChildrenOf(registry, folder));
    FIRN_TRY(Repair(registry, era, children, SetEmpty, repaired));
  }
  for (const std::string_view folder : {kProvidersPath, kPacesPath, kConfiguratorsPath}) {
    FIRN_ASSIGN(const Paths children, ChildrenOf(registry, std::string(folder)));
    FIRN_TRY(Repair(registry, era, children, EraseNode, repaired));
  }
  FIRN_ASSIGN(const Paths racks, ChildrenOf(registry, kMachinesPath));
  FIRN_TRY(Repair(registry, era, racks, SetEmpty, repaired));
  for (const std::string& rack : racks) {
    FIRN_ASSIGN(const Paths records, ChildrenOf(registry, rack));
    Paths beside;
    for (const std::string& record : records) {
      for (const char* name : {"live", "past"}) beside.push_back(ChildPath(record, name));
    }
    FIRN_TRY(Repair(registry, era, beside, EraseNode, repaired));
  }
  return repaired;
}

}  // namespace firn
