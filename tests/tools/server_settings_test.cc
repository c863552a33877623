#include "tools/firn/server_settings.h"

#include <gtest/gtest.h>

#include "common/base/url_encoding.h"
#include "registry/cluster/cluster_setup.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

class ServerWordsTest : public testing::Test {
 protected:
  static constexpr const char* kAddress = "10.0.0.7:7609";

  void SetUp() override {
    ASSERT_TRUE(registry_.Connect(Milliseconds(0)).ok());
    ASSERT_TRUE(MakeCluster(registry_, {.workers = 1}, entropy_).ok());
  }

  Result<Configurator> SetWeight(int weight) {
    return ServerSettings(registry_).Edit(kAddress,
                                          [weight](Configurator& word) { word.weight = weight; });
  }

  VirtualClock clock_{WallMs(1'750'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator coordinator_{tree_};
  BlockingCoordinator registry_{coordinator_, clock_};
  SeededEntropy entropy_{1};
};

TEST_F(ServerWordsTest, LeavesNoSettingAtAVersionThatCannotBeGuarded) {
  const std::string path = std::string(kConfiguratorsPath) + "/" + UrlEncode(kAddress);
  ASSERT_TRUE(SetWeight(10).ok());
  tree_.SetVersion(path, -2);
  for (const int weight : {20, 30}) {
    ASSERT_TRUE(SetWeight(weight).ok());
    EXPECT_EQ(ServerSettings(registry_).Read(kAddress)->weight, weight);
    EXPECT_GE(tree_.Peek(path)->stat.version, 0);
  }
}

}  // namespace
}  // namespace firn
