// Tests a registry with host names that cannot be resolved. This file replaces the C library's
// resolver.

#include <atomic>
#include <memory>
#include <string>

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <netdb.h>

#include "common/log/log.h"
#include "registry/zk/zk_coordinator.h"
#include "tests/support/coordinator_client.h"
#include "tests/support/zookeeper.h"

namespace {

constexpr const char* kName = "zk.firn.test";

std::atomic<int> failure{0};  // the error for kName; 0: the name of this host
std::atomic<int> asked{0};
std::atomic<bool> silent{false};  // while set, the resolver does not answer

// Waits until the resolver answers again, at most for a resolver's longest timeout.
void AwaitNameService() {
  constexpr firn::Milliseconds kResolverPatience{15'000};
  if (!firn::Eventually(kResolverPatience, [] { return !silent; })) silent = false;
}

}  // namespace

extern "C" int getaddrinfo(const char* node, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Function = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto real = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool only_addresses = hints != nullptr && (hints->ai_flags & AI_NUMERICHOST) != 0;
  if (node == nullptr || std::string(node) != kName || only_addresses) {
    return real(node, service, hints, found);
  }
  ++asked;
  AwaitNameService();
  if (failure != 0) return failure;
  return real("127.0.0.1", service, hints, found);
}

namespace firn {
namespace {

// Number of log lines about the name since the first test.
std::atomic<int> said{0};

void Hear(const LogEntry& entry) {
  if (entry.text.find(kName) != std::string::npos) ++said;
}

class ZkNameServiceTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    SendLogTo(Hear);
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
  }
  static void TearDownTestSuite() { zookeeper_.reset(); }

  void SetUp() override {
    failure = 0;
    asked = 0;
  }

  static CoordinatorClient Make() {
    return CoordinatorClient(std::make_unique<ZkCoordinator>(
        ZkOptions{.hosts = std::string(kName) + ":" + std::to_string(zookeeper_->port(0)),
                  .root = "/firn/test",
                  .reopen_after = Milliseconds(50)},
        SystemClock()));
  }

  static inline std::unique_ptr<ZooKeeper> zookeeper_;
};

class ZkNamesTest : public ZkNameServiceTest, public testing::WithParamInterface<int> {};

TEST_P(ZkNamesTest, RetriesANameThatIsNotResolved) {
  failure = GetParam();
  CoordinatorClient client = Make();
  EXPECT_TRUE(client.Await([] { return asked >= 3; })) << gai_strerror(GetParam());
  failure = 0;
  EXPECT_TRUE(client.AwaitSession());
}

TEST_F(ZkNameServiceTest, LogsAnUnresolvedNameButNotEachTime) {
  const int before = said;
  failure = EAI_NONAME;
  CoordinatorClient client = Make();
  EXPECT_TRUE(client.Await([] { return asked >= 3; }));
  EXPECT_GE(said, 1);
  EXPECT_LT(said - before, asked) << "at most one in half a minute";
}

// The dispatching thread also raises the limit of a held claim.
TEST_F(ZkNameServiceTest, DispatchDoesNotWaitForASilentNameService) {
  silent = true;
  CoordinatorClient client = Make();
  int rounds = 0;
  EXPECT_TRUE(client.Await([&] { return asked > 0 && ++rounds > 20; }));
  EXPECT_TRUE(silent) << "it was waited for";
  EXPECT_EQ(asked, 1) << "no second lookup before there is an answer";
  silent = false;
  EXPECT_TRUE(client.AwaitSession());
}

TEST_F(ZkNameServiceTest, ACoordinatorCanEndDuringANameLookup) {
  silent = true;
  {
    CoordinatorClient client = Make();
    EXPECT_TRUE(client.Await([&] { return asked > 0; }));
  }
  EXPECT_TRUE(silent) << "it was waited for";
  silent = false;
}

INSTANTIATE_TEST_SUITE_P(Failures, ZkNamesTest, testing::Values(EAI_AGAIN, EAI_NONAME),
                         [](const auto& of) { return "Failure" + std::to_string(-of.param); });

}  // namespace
}  // namespace firn
