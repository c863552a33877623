#include "client/socket/socket_pools.h"

#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn::client {
namespace {

class SocketPoolsTest : public testing::Test {
 protected:
  // Room for a connection to the server, without waiting for it.
  bool Takes(uint64_t server) {
    return pools_.Of(server)->Take(clock_.BootMicros(), clock_).has_value();
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SocketPools pools_{{.connections_max = 2}};
};

TEST_F(SocketPoolsTest, HasOnePoolForEachServer) {
  EXPECT_EQ(pools_.Of(1), pools_.Of(1));
  EXPECT_NE(pools_.Of(1), pools_.Of(2));
}

TEST_F(SocketPoolsTest, BoundsTheConnectionsToEachServer) {
  EXPECT_TRUE(Takes(1));
  EXPECT_TRUE(Takes(1));
  EXPECT_FALSE(Takes(1));
  EXPECT_TRUE(Takes(2));
  pools_.Of(1)->Give(nullptr);
  EXPECT_TRUE(Takes(1));
}

TEST_F(SocketPoolsTest, LetsGoOfServersThatAreNoMore) {
  const std::weak_ptr<SocketPool> gone = pools_.Of(1), stays = pools_.Of(2);
  pools_.KeepOnly({2, 3});
  EXPECT_TRUE(gone.expired());
  EXPECT_EQ(stays.lock(), pools_.Of(2));
}

TEST_F(SocketPoolsTest, LeavesAPoolToThoseWhoHaveAConnectionOfIt) {
  const std::shared_ptr<SocketPool> held = pools_.Of(1);
  EXPECT_TRUE(Takes(1));
  EXPECT_TRUE(Takes(1));
  pools_.KeepOnly({});
  EXPECT_FALSE(held->Take(clock_.BootMicros(), clock_).has_value());
  held->Give(nullptr);
  EXPECT_TRUE(held->Take(clock_.BootMicros(), clock_).has_value());
  EXPECT_NE(pools_.Of(1), held);
}

}  // namespace
}  // namespace firn::client
