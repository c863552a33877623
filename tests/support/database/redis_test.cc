#include "tests/support/database/redis.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

TEST(RedisTest, KeepsDataOnDiskAsConfigured) {
  auto redis = Redis::Start({.append_only = true, .sync_always = true, .password = "secret"});
  ASSERT_TRUE(redis.ok()) << redis.status();
  ASSERT_TRUE((*redis)->Run({"SET", "key", "value"}).ok());
  const std::string run_id = (*redis)->Info("run_id");
  (*redis)->Kill();
  ASSERT_TRUE((*redis)->Restart().ok());
  EXPECT_EQ((*redis)->Run({"GET", "key"}).value_or("?"), "value");
  EXPECT_NE((*redis)->Info("run_id"), run_id);
  ASSERT_TRUE((*redis)->Replace().ok());
  EXPECT_EQ((*redis)->Run({"GET", "key"}).value_or("?"), "");
}

TEST(RedisTest, AReplicaTakesOverWhenPromoted) {
  auto primary = Redis::Start();
  auto replica = Redis::Start();
  ASSERT_TRUE(primary.ok() && replica.ok());
  ASSERT_TRUE((*primary)->Run({"SET", "key", "value"}).ok());
  ASSERT_TRUE((*replica)->Follow(**primary).ok());
  EXPECT_FALSE((*replica)->Run({"SET", "key", "other"}).ok());
  const std::string replid = (*replica)->Info("master_replid");
  (*primary)->Kill();
  ASSERT_TRUE((*replica)->Promote().ok());
  EXPECT_EQ((*replica)->Run({"GET", "key"}).value_or("?"), "value");
  EXPECT_NE((*replica)->Info("master_replid"), replid);
}

}  // namespace
}  // namespace firn
