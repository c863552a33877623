#include <memory>

#include "common/entropy.h"
#include "registry/dir/dir_coordinator.h"
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

 private:
  TempDir folder_;
};

INSTANTIATE_TEST_SUITE_P(Directory, CoordinatorContract,
                         testing::Values(WorldMaker{"dir",
                                                    [] { return std::make_unique<DirWorld>(); }}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
