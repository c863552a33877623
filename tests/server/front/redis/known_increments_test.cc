// A repeated INCR gets the same answers on the fast path as on the slow one.

#include <memory>
#include <string>
#include <vector>

#include "tests/server/front/redis/redis_side.h"
#include "tests/support/allocations.h"

namespace firn::front {
namespace {

class KnownIncrementsTest : public RedisTest {};

TEST_F(KnownIncrementsTest, TakesIdsOfTheTagThatTheRequestNames) {
  // More tags than are remembered: some of equal length, all with the same beginning and end.
  const auto name = [](int i) {
    return std::string(static_cast<size_t>(i / 3), 'x') + "abc"[i % 3] + "-tag-of-them";
  };
  std::vector<std::shared_ptr<ScriptedStrategy>> strategies;
  for (int i = 0; i < 100; ++i) {
    strategies.push_back(std::make_shared<ScriptedStrategy>());
    strategies.back()->next = 1'000'000 * (i + 1);
    ASSERT_TRUE(issuing_.issuer.Set({name(i), strategies.back(), {}}).ok());
  }
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 100; ++i) {
      for (int again = 0; again < 2; ++again) {
        const std::string answer = redis_.Ask({"INCR", name(i)});
        ASSERT_TRUE(answer.starts_with(":" + std::to_string(i + 1))) << answer;
        ASSERT_EQ(answer.size(), std::to_string(1'000'000 * (i + 1)).size() + 3) << answer;
      }
    }
  }
}

TEST_F(KnownIncrementsTest, ServesKeysOfEveryLength) {
  for (size_t size = 1; size <= 128; ++size) {
    const std::string tag(size, 'k');
    ASSERT_TRUE(issuing_.issuer.Set({tag, issuing_.slow, {}}).ok());
    const int64_t before = issuing_.slow->next;
    for (int i = 0; i < 3; ++i) redis_.Ask({"INCR", tag});
    EXPECT_EQ(redis_.Ask({"INCR", tag}), ":" + std::to_string(before + 3) + "\r\n") << size;
  }
}

TEST_F(KnownIncrementsTest, RefusesARemovedTagAndServesItOnceItIsBack) {
  redis_.Ask({"INCR", "slow"});
  EXPECT_EQ(redis_.Ask({"INCR", "slow"}), ":2\r\n");
  issuing_.issuer.Remove("slow");
  EXPECT_TRUE(redis_.Ask({"INCR", "slow"}).starts_with("-ERR firn UNKNOWN_TAG"));
  ASSERT_TRUE(issuing_.issuer.Set({"slow", issuing_.slow, {}}).ok());
  EXPECT_EQ(redis_.Ask({"INCR", "slow"}), ":3\r\n");
}

TEST_F(KnownIncrementsTest, DoesNotRememberANameThatIsServedByDefault) {
  issuing_.issuer.SetDefault(TagBinding{"", issuing_.slow, {}});
  EXPECT_EQ(redis_.Ask({"INCR", "new"}), ":1\r\n");
  EXPECT_EQ(redis_.Ask({"INCR", "new"}), ":2\r\n");
  const auto own = std::make_shared<ScriptedStrategy>();
  own->next = 500;
  ASSERT_TRUE(issuing_.issuer.Set({"new", own, {}}).ok());
  EXPECT_EQ(redis_.Ask({"INCR", "new"}), ":500\r\n");
}

TEST_F(KnownIncrementsTest, IsNotConfusedByRequestsThatLookAlike) {
  redis_.Ask({"INCR", "slow"});
  EXPECT_EQ(redis_.Ask({"DECR", "slow"}),
            "-ERR unknown command 'DECR', with args beginning with: 'slow' \r\n");
  EXPECT_EQ(redis_.Raw("*2\r\n$4\r\nINCR\r\n$4\r\nslow"), "");
  EXPECT_EQ(redis_.step.kind, Kind::kNeedMore);
  EXPECT_TRUE(redis_.Raw("*2\r\n$4\r\nINCR\r\n$4\r\nslowX\n").starts_with("-ERR Protocol error"));
  EXPECT_EQ(issuing_.slow->next, 2);
}

TEST_F(KnownIncrementsTest, AllocatesNothing) {
  std::string requests;
  for (int i = 0; i < 64; ++i) requests += Resp({"INCR", "order"});
  const std::string other = Resp({"INCR", "slow"});
  DoorCall door{.together = 64};
  OutBuffer out;
  const auto serve = [&] {
    for (int i = 0; i < 10; ++i) {
      out.Clear();
      redis_.protocol().Serve(requests, door, out);
      redis_.protocol().Serve(other, door, out);
    }
  };
  serve();
  const int64_t before = Allocations();
  serve();
  EXPECT_EQ(Allocations(), before);
}

}  // namespace
}  // namespace firn::front
