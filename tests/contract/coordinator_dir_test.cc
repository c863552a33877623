#include <fstream>
#include <memory>
#include <string>

#include "common/base/files.h"
#include "common/time/entropy.h"
#include "registry/dir/dir_coordinator.h"
#include "registry/dir/dir_format.h"
#include "tests/contract/coordinator_contract.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class DirWorld final : public CoordinatorWorld {
 public:
  std::unique_ptr<Coordinator> Connect() override {
    auto opened =
        DirCoordinator::Open({.path = folder_ / "registry", .time_limit = Milliseconds(15'000)},
                             SystemClock(), SystemEntropy());
    if (!opened.ok()) Die(opened.status().ToString());
    return std::move(*opened);
  }
  bool SetVersion(const std::string& path, int64_t version) override {
    const std::string place = folder_ / ("registry" + FolderOfPath(path) + "/" + kNodeFile);
    NodeFile file = *ParseNode(*ReadFile(place, 1 << 20));
    file.node.stat.version = version;
    return (std::ofstream(place) << RenderNode(file.name, file.node)).good();
  }

 private:
  TempDir folder_;
};

INSTANTIATE_TEST_SUITE_P(Directory, CoordinatorContract,
                         testing::Values(WorldMaker{"dir",
                                                    [] { return std::make_unique<DirWorld>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
