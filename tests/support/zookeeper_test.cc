#include "tests/support/zookeeper.h"

#include <optional>

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(ZooKeeperTest, OneServerIsEmptyAfterAWipe) {
  auto zk = ZooKeeper::Start();
  ASSERT_TRUE(zk.ok()) << zk.status();
  EXPECT_EQ((*zk)->Mode(0), "standalone");
  EXPECT_TRUE((*zk)->Wipe().ok());
  EXPECT_EQ((*zk)->Leader(), 0);
}

TEST(ZooKeeperTest, AnEnsembleElectsAnotherLeader) {
  auto started = ZooKeeper::Start({.members = 3});
  ASSERT_TRUE(started.ok()) << started.status();
  ZooKeeper& zk = **started;
  const std::optional<int> first = zk.Leader();
  ASSERT_TRUE(first.has_value());
  zk.Kill(*first);
  EXPECT_TRUE(zk.AwaitReady().ok());
  ASSERT_TRUE(zk.Leader().has_value());
  EXPECT_NE(zk.Leader(), first);
  EXPECT_TRUE(zk.Restart(*first).ok());
  EXPECT_TRUE(zk.AwaitReady().ok());
  EXPECT_EQ(zk.Mode(*first), "follower");
  zk.KillAll();
  EXPECT_FALSE(zk.Leader().has_value());
}

}  // namespace
}  // namespace firn
