#include "tests/support/database/mariadb.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

class MariaDbTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = MariaDb::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    ASSERT_TRUE(server_->Run("CREATE TABLE t (n INT PRIMARY KEY)").ok());
  }

  std::unique_ptr<MariaDb> server_;
};

TEST_F(MariaDbTest, WritesSurviveAKill) {
  ASSERT_TRUE(server_->Run("INSERT INTO t VALUES (7)").ok());
  server_->Kill();
  EXPECT_FALSE(server_->Run("SELECT 1").ok());
  ASSERT_TRUE(server_->Restart().ok());
  EXPECT_EQ(First(server_->Query("SELECT n FROM t")), "7");
}

TEST_F(MariaDbTest, PromotesALaggingReplicaWithoutTheLatestWrites) {
  auto replica = server_->StartReplica();
  ASSERT_TRUE(replica.ok()) << replica.status();
  ASSERT_TRUE(server_->Run("INSERT INTO t VALUES (1)").ok());
  ASSERT_TRUE((*replica)->AwaitCaughtUp(*server_).ok());
  ASSERT_TRUE((*replica)->StopFollowing().ok());
  ASSERT_TRUE(server_->Run("INSERT INTO t VALUES (2)").ok());
  ASSERT_TRUE((*replica)->Promote().ok());
  EXPECT_EQ(First((*replica)->Query("SELECT MAX(n) FROM t")), "1");
}

}  // namespace
}  // namespace firn
