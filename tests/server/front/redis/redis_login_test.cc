#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/server/front/redis/redis_side.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

class RedisLoginTest : public testing::Test {
 protected:
  using Kind = ServeStep::Kind;

  RedisLoginTest() {
    Write("logins", "# users\ndefault:open sesame\n\nalice:a:b\r\n");
    Write("rights", "redis:alice slow\nredis:default order\nshop slow\n");
    if (!logins_.Load().ok() || !rights_.Load().ok()) Die("the files were not read");
    redis_.emplace(issuing_, &logins_, &rights_);
  }

  void Write(const std::string& name, const std::string& text) {
    const std::string path = dir_ / name;
    std::ofstream(path) << text;
    chmod(path.c_str(), 0600);
  }
  std::string Ask(const std::vector<std::string>& words) { return redis_->Ask(words); }

  static constexpr const char* kWrong =
      "-WRONGPASS invalid username-password pair or user is disabled.\r\n";
  static constexpr const char* kNoAuth = "-NOAUTH Authentication required.\r\n";

  const TempDir dir_;
  Issuing issuing_;
  RedisLogins logins_{dir_ / "logins"};
  TagRights rights_{dir_ / "rights"};
  std::optional<RedisSide> redis_;
};

TEST_F(RedisLoginTest, RefusesEverythingBeforeTheLogin) {
  for (const char* const name : {"INCR", "GET", "PING", "INFO", "CLIENT", "COMMAND", "NONSENSE"}) {
    EXPECT_EQ(Ask({name, "slow"}), kNoAuth) << name;
  }
  EXPECT_TRUE(Ask({"HELLO", "3"}).starts_with("-NOAUTH HELLO must be called with"));
  EXPECT_EQ(Ask({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(Ask({"AUTH", "alice", "a:b"}), "+OK\r\n");
  EXPECT_EQ(Ask({"INCR", "slow"}), ":1\r\n");
  EXPECT_EQ(Ask({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(Ask({"INCR", "slow"}), kNoAuth) << "RESET forgets the user";
  EXPECT_EQ(Ask({"QUIT"}), "+OK\r\n");
}

TEST_F(RedisLoginTest, HelloLogsInAndSelectsTheVersion) {
  EXPECT_TRUE(Ask({"HELLO", "3", "AUTH", "alice", "a:b", "SETNAME", "x"}).starts_with("%7\r\n"));
  EXPECT_EQ(Ask({"INCR", "slow"}), ":1\r\n");
  EXPECT_EQ(Ask({"CLIENT", "GETNAME"}), Bulk("x"));
}

TEST_F(RedisLoginTest, GrantsTheUsersOwnTagsOnly) {
  EXPECT_EQ(Ask({"AUTH", "open sesame"}), "+OK\r\n");
  EXPECT_EQ(Ask({"INCR", "slow"}),
            "-NOPERM firn REJECTED: user 'redis:default' has no right to ids of 'slow'\r\n");
  EXPECT_TRUE(Ask({"INCR", "order"}).starts_with(":"));
  EXPECT_EQ(rights_.refused().at("redis:default"), 1u);
  // The last login counts.
  EXPECT_EQ(Ask({"AUTH", "alice", "a:b"}), "+OK\r\n");
  EXPECT_TRUE(Ask({"INCR", "order"}).starts_with("-NOPERM "));
}

TEST_F(RedisLoginTest, ACertificateCannotNameAUser) {
  EXPECT_EQ(Ask({"AUTH", "open sesame"}), "+OK\r\n");
  redis_->door.names = {"redis:alice"};
  EXPECT_TRUE(Ask({"INCR", "slow"}).starts_with("-NOPERM "));
  redis_->door.names = {"shop"};
  EXPECT_EQ(Ask({"INCR", "slow"}), ":1\r\n") << "its other names count beside the user";
}

TEST_F(RedisLoginTest, ACertificateIsNotCountedAsAUser) {
  TagRights::Reader reader(rights_);
  EXPECT_FALSE(reader.Permit({"redis:alice", "shop2"}, "", "order"));
  EXPECT_FALSE(reader.Permit({"redis:alice"}, "", "order"));
  EXPECT_EQ(rights_.refused(), (std::map<std::string, uint64_t>{{"", 1}, {"shop2", 1}}));
}

TEST_F(RedisLoginTest, ClosesAfterThreeFailures) {
  EXPECT_EQ(Ask({"AUTH", "alice", "a:bb"}), kWrong);
  EXPECT_EQ(Ask({"AUTH", "nobody", ""}), kWrong);
  EXPECT_EQ(redis_->step.kind, Kind::kServed);
  EXPECT_EQ(Ask({"RESET"}), "+RESET\r\n");
  EXPECT_EQ(Ask({"HELLO", "2", "AUTH", "alice", "a:"}), kWrong);
  EXPECT_EQ(redis_->step.kind, Kind::kClose);
}

TEST_F(RedisLoginTest, LimitsRequestsBeforeTheLogin) {
  EXPECT_TRUE(redis_->Raw("*11\r\n").starts_with("-ERR Protocol error: invalid multibulk length"));
  EXPECT_EQ(redis_->step.kind, Kind::kClose);
  redis_->Reconnect();
  EXPECT_TRUE(redis_->Raw("*2\r\n$16385\r\n").starts_with("-ERR Protocol error: invalid bulk"));
  redis_->Reconnect();
  EXPECT_EQ(Ask({"AUTH", "alice", "a:b"}), "+OK\r\n");
  EXPECT_EQ(redis_->Raw("*11\r\n"), "");
  EXPECT_EQ(redis_->step.kind, Kind::kNeedMore);
}

TEST_F(RedisLoginTest, AReloadLogsOutUsersThatWereRemovedAndKeepsTheOthers) {
  Ask({"AUTH", "alice", "a:b"});
  EXPECT_EQ(Ask({"INCR", "slow"}), ":1\r\n");
  Write("logins", "alice:other\n");
  ASSERT_TRUE(logins_.Load().ok());
  EXPECT_EQ(Ask({"INCR", "slow"}), ":2\r\n") << "as Redis: a new password is for new logins";
  EXPECT_EQ(Ask({"AUTH", "alice", "a:b"}), kWrong);
  Write("logins", "bob:x\n");
  ASSERT_TRUE(logins_.Load().ok());
  EXPECT_EQ(Ask({"INCR", "slow"}), kNoAuth);
}

TEST_F(RedisLoginTest, RefusesAnInvalidFileAndKeepsTheEarlierLogins) {
  const std::pair<const char*, const char*> kFaults[] = {
      {"secret\n", "line 1 is not user:password"},
      {"a:b\nalice:\n", "line 2 is not user:password"},
      {"a b:c\n", "line 1: a user has"},
      {":c\n", "line 1: a user has"},
      {"a:b\na:c\n", "line 2: 'a' has a line already"},
      {"# nothing\n", "the file has no user"},
  };
  for (const auto& [text, fault] : kFaults) {
    Write("logins", text);
    const Status loaded = logins_.Load();
    EXPECT_EQ(loaded.code(), Code::kInvalid) << text;
    EXPECT_NE(loaded.message().find(fault), std::string::npos) << loaded.message();
    EXPECT_EQ(loaded.message().find("secret"), std::string::npos) << "a password in a message";
  }
  EXPECT_EQ(Ask({"AUTH", "alice", "a:b"}), "+OK\r\n");
}

TEST_F(RedisLoginTest, RefusesAFileThatOthersCanRead) {
  chmod((dir_ / "logins").c_str(), 0644);
  EXPECT_EQ(logins_.Load().code(), Code::kDenied);
}

}  // namespace
}  // namespace firn::front
