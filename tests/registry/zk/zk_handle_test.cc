#include "registry/zk/zk_handle.h"

#include <atomic>
#include <memory>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "registry/zk/zk_coordinator.h"
#include "tests/support/coordinator_client.h"
#include "tests/support/process.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

using Kind = SessionEvent::Kind;

constexpr Milliseconds kShortSession{2000};

// A session ends on a thread of the library, and its user may write until it handles the event.
TEST(ZkHandleTest, RefusesWritesWithoutAConnectionAndAfterTheSession) {
  auto zk = ZooKeeper::Start({.members = 1});
  ASSERT_TRUE(zk.ok()) << zk.status();
  CoordinatorClient direct(std::make_unique<ZkCoordinator>(
      ZkOptions{.hosts = (*zk)->hosts(), .root = ""}, SystemClock()));
  ASSERT_TRUE(direct.AwaitSession());
  TcpProxy proxy((*zk)->port(0));
  std::atomic<Kind> last{Kind::kDisconnected};
  const auto await = [&](Kind kind) { return Eventually(kPatience, [&] { return last == kind; }); };
  auto handle = ZkHandle::Open({"127.0.0.1:" + std::to_string(proxy.port()), kShortSession, ""},
                               [&](const ZkHandle::Event& event) {
                                 const auto* session = std::get_if<SessionEvent>(&event);
                                 if (session != nullptr) last = session->kind;
                               });
  ASSERT_TRUE(handle.ok()) << handle.status();
  ASSERT_TRUE(await(Kind::kConnected));
  const auto write = [&] {
    return (*handle)->Multi(
        {Write::Create("/of-this-session", "", Lifetime::kEphemeral), Write::Check("/zookeeper", 0),
         Write::Set("/zookeeper", "", 0), Write::Erase("/no-such-node", 0)},
        1);
  };
  ASSERT_TRUE((*handle)->Multi({Write::Create("/live", "", Lifetime::kEphemeral)}, 1).ok());
  ASSERT_TRUE(Eventually(kPatience, [&] { return direct.Read("/live").ok(); }));
  proxy.Refuse(true);
  ASSERT_TRUE(await(Kind::kDisconnected));
  EXPECT_EQ(write().code(), Code::kUnavailable);
  ASSERT_TRUE(
      Eventually(kPatience, [&] { return direct.Read("/live").code() == Code::kNotFound; }));
  proxy.Refuse(false);
  ASSERT_TRUE(await(Kind::kExpired));
  EXPECT_EQ(write().code(), Code::kUnavailable);
}

}  // namespace
}  // namespace firn
