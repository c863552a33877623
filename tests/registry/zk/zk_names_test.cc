// A registry by names, while nobody answers for them: the C library's name service is this file.

#include <atomic>
#include <memory>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "registry/zk/zk_coordinator.h"
#include "tests/support/coordinator_client.h"
#include "tests/support/zookeeper.h"

namespace {

constexpr const char* kName = "zk.firn.test";

std::atomic<int> failure{0};  // what is said of kName; 0: it is this very host
std::atomic<int> asked{0};

}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  if (node == nullptr || std::string(node) != kName) return real(node, service, hints, found);
  ++asked;
  if (failure != 0) return failure;
  return real("127.0.0.1", service, hints, found);
}

namespace firn {
namespace {

class ZkNamesTest : public testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
  }
  static void TearDownTestSuite() { zookeeper_.reset(); }

  static std::unique_ptr<ZooKeeper> zookeeper_;
};

std::unique_ptr<ZooKeeper> ZkNamesTest::zookeeper_;

TEST_P(ZkNamesTest, ANameThatIsNotResolvedIsAskedForAgain) {
  failure = GetParam();
  asked = 0;
  CoordinatorClient client(std::make_unique<ZkCoordinator>(
      ZkOptions{.hosts = std::string(kName) + ":" + std::to_string(zookeeper_->port(0)),
                .root = "/firn/test",
                .reopen_after = Milliseconds(50)},
      SystemClock()));
  EXPECT_TRUE(client.Await([] { return asked >= 3; })) << gai_strerror(GetParam());
  failure = 0;
  EXPECT_TRUE(client.AwaitSession());
}

INSTANTIATE_TEST_SUITE_P(Failures, ZkNamesTest, testing::Values(EAI_AGAIN, EAI_NONAME),
                         [](const auto& of) { return "Failure" + std::to_string(-of.param); });

}  // namespace
}  // namespace firn
