#include "tests/sim/sim_reports.h"

#include "common/base/cat.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

void PublishReports(MemoryTree& tree, const Clock& clock,
                    const std::map<std::string, ProviderReport>& reports) {
  MemoryCoordinator memory(tree);
  BlockingCoordinator registry(memory, clock);
  if (!registry.Connect(Milliseconds(1'000)).ok()) Die("no session to publish reports");
  const std::string folder(kProvidersPath);
  for (const std::string& name : registry.List(folder).value_or({})) {
    registry.Multi({Write::Erase(Cat(folder, "/", name), Write::kAnyVersion)});
  }
  if (reports.empty()) return;
  const auto create = [&registry](const std::string& path, const std::string& data) {
    return registry.Multi({Write::Create(path, data, Lifetime::kPersistent)}).status;
  };
  for (const std::string_view path : {kServicePath, kProvidersPath}) {
    static_cast<void>(create(std::string(path), ""));  // may exist
  }
  if (!registry.Read(folder).ok()) return;  // there is no root node
  for (const auto& [address, report] : reports) {
    const std::string path = Cat(folder, "/", ProviderNodeName({.address = address}));
    const Status created = create(path, FormatReport(report));
    if (!created.ok()) Die("a report cannot be published: " + created.message());
  }
}

}  // namespace firn
