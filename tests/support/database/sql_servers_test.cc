#include <memory>

#include <gtest/gtest.h>

#include "tests/support/database/mariadb.h"
#include "tests/support/database/postgres.h"

namespace firn {
namespace {

template <typename Server>
class SqlServersTest : public testing::Test {
 protected:
  void SetUp() override {
    auto started = Server::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    ASSERT_TRUE(server_->Run("CREATE TABLE t (n INT PRIMARY KEY)").ok());
  }

  std::unique_ptr<Server> server_;
};
using Servers = testing::Types<MariaDb, Postgres>;
TYPED_TEST_SUITE(SqlServersTest, Servers);

TYPED_TEST(SqlServersTest, WritesSurviveAKill) {
  ASSERT_TRUE(this->server_->Run("INSERT INTO t VALUES (7)").ok());
  this->server_->Kill();
  EXPECT_FALSE(this->server_->Run("SELECT 1").ok());
  ASSERT_TRUE(this->server_->Restart().ok());
  EXPECT_EQ(First(this->server_->Query("SELECT n FROM t")), "7");
}

TYPED_TEST(SqlServersTest, PromotesALaggingReplicaWithoutTheLatestWrites) {
  auto replica = this->server_->StartReplica();
  ASSERT_TRUE(replica.ok()) << replica.status();
  ASSERT_TRUE(this->server_->Run("INSERT INTO t VALUES (1)").ok());
  ASSERT_TRUE((*replica)->AwaitCaughtUp(*this->server_).ok());
  ASSERT_TRUE((*replica)->StopFollowing().ok());
  ASSERT_TRUE(this->server_->Run("INSERT INTO t VALUES (2)").ok());
  ASSERT_TRUE((*replica)->Promote().ok());
  EXPECT_EQ(First((*replica)->Query("SELECT MAX(n) FROM t")), "1");
}

}  // namespace
}  // namespace firn
