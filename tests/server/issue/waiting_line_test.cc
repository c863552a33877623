#include "server/issue/waiting_line.h"

#include <chrono>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "common/id/id_clock.h"
#include "common/time/entropy.h"
#include "server/issue/issuer.h"
#include "server/issue/snowflake/snowflake.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kPatience{50};
constexpr int64_t kMany = 100'000;

class Quiet final : public RejectionHandler {
 public:
  void OnRefusal(const Request&, const Refusal&) override {}
};

// Clients that request 100,000 ids of one tag, one call after another. Time passes in ticks, in
// each of which every waiting call is tried once, the last one first.
class WaitingLineTest : public testing::Test {
 protected:
  struct Client {
    IssueCall call{};
    bool waits = false;
    int64_t until_ms = 0;
    int64_t not_before_ms = 0;
    int served = 0;
  };

  WaitingLineTest() {
    auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(5), clock_.Wall());
    claim->ExtendTo(clock_.Wall() + Milliseconds(10'000'000));
    if (!snowflake_->Adopt(claim).ok()) Die("the claim was not adopted");
    if (!issuer_.Set({"order", snowflake_, {}}).ok()) Die("no tag order");
  }

  int64_t now() const { return clock_.Boot().ms(); }

  void Try(Client& client) {
    if (!client.waits) {
      if (now() < client.not_before_ms) return;
      client.call.Begin(*issuer_.Resolve("order"),
                        {.tag = "order", .count = kMany, .patience = kPatience});
      client.until_ms = now() + kPatience.count();
    }
    const Verdict verdict = issuer_.Issue(client.call);
    client.waits = verdict == Verdict::kWait;
    if (verdict == Verdict::kIssued) ++client.served;
    if (verdict == Verdict::kRefused) {
      EXPECT_EQ(client.call.refusal().reason, Reason::kOverloaded);
      EXPECT_GT(client.call.refusal().retry_after_ms, 0);
      client.not_before_ms = now() + client.call.refusal().retry_after_ms;
    }
    if (client.waits && now() >= client.until_ms) {
      issuer_.GiveUp(client.call);
      client.waits = false;
      ++timed_out_;
    }
  }

  // How many calls of `clients` are served in a second.
  int Served(size_t clients) {
    std::vector<Client> all(clients);
    for (int tick = 0; tick < 1'000; ++tick) {
      clock_.Advance(Milliseconds(1));
      for (size_t i = all.size(); i-- > 0;) Try(all[i]);
    }
    int served = 0;
    for (const Client& client : all) served += client.served;
    return served;
  }

  VirtualClock clock_{WallMs(1'735'689'600'000)};
  IdClock id_clock_;
  TickSource ticks_{Layout::Firn(), id_clock_, clock_, false};
  SeededEntropy entropy_{1};
  std::shared_ptr<Snowflake> snowflake_ = std::make_shared<Snowflake>(ticks_, entropy_);
  Quiet rejections_;
  Issuer issuer_{rejections_, clock_};
  int timed_out_ = 0;
};

TEST_F(WaitingLineTest, ManyClientsGetTogetherWhatOneGets) {
  const int one = Served(1);
  EXPECT_GE(one, 39);
  for (const size_t clients : {8u, 200u}) {
    EXPECT_GE(Served(clients), one - 3) << clients << " clients";
  }
  EXPECT_EQ(timed_out_, 0);
}

TEST_F(WaitingLineTest, ASmallCallIsServedWhileLargeOnesWait) {
  std::vector<Client> all(8);
  for (Client& client : all) Try(client);
  clock_.Advance(Milliseconds(1));
  IssueCall small(*issuer_.Resolve("order"), {.tag = "order", .count = 100});
  EXPECT_EQ(issuer_.Issue(small), Verdict::kIssued);
}

TEST_F(WaitingLineTest, ACallThatIsDestroyedLeavesItsPlace) {
  Client second;
  {
    Client first;
    Try(first);
    Try(second);
    ASSERT_TRUE(first.waits);
    EXPECT_FALSE(second.waits) << "both do not fit";
  }
  second.not_before_ms = 0;
  Try(second);
  EXPECT_TRUE(second.waits);
}

TEST_F(WaitingLineTest, CallsInTheLineAreRefusedWhenTheClaimIsLost) {
  WaitingLine::Place place;
  const auto portions = snowflake_->portions();
  ASSERT_FALSE(snowflake_->line().Join(place, kMany, portions, kPatience, microseconds(0)));
  IssueCall call(*issuer_.Resolve("order"), {.tag = "order", .count = kMany});
  EXPECT_EQ(issuer_.Issue(call), Verdict::kWait);
  snowflake_->CloseClaim();
  EXPECT_EQ(issuer_.Issue(call), Verdict::kRefused);
  EXPECT_EQ(call.refusal().reason, Reason::kNotReady);
}

TEST_F(WaitingLineTest, CallsInTheLineAreRefusedWhileTheServerDrains) {
  Client client;
  Try(client);
  ASSERT_TRUE(client.waits);
  issuer_.Drain();
  EXPECT_EQ(issuer_.Issue(client.call), Verdict::kRefused);
  EXPECT_EQ(client.call.refusal().reason, Reason::kDraining);
}

TEST_F(WaitingLineTest, ServesInOrderOfArrival) {
  WaitingLine line;
  const WaitingLine::Portions portions{.ids = 100, .every = milliseconds(1)};
  WaitingLine::Place first, second, third;
  microseconds again{0};
  for (WaitingLine::Place* place : {&first, &second, &third}) {
    ASSERT_FALSE(line.Join(*place, 1'000, portions, milliseconds(100), microseconds(0)));
  }
  EXPECT_TRUE(line.IsTurn(first, portions, &again));
  EXPECT_FALSE(line.IsTurn(second, portions, &again));
  EXPECT_EQ(again, milliseconds(5)) << "at most";
  line.Note(first, 50, milliseconds(9));
  EXPECT_FALSE(line.IsTurn(second, portions, &again));
  EXPECT_EQ(again, milliseconds(1)) << "in the tick after the first's last one";
  first.Leave();
  EXPECT_TRUE(line.IsTurn(second, portions, &again));
  EXPECT_FALSE(line.IsTurn(third, portions, &again));
  second.Leave();
  EXPECT_TRUE(line.IsTurn(third, portions, &again));
}

TEST_F(WaitingLineTest, RefusesAtOnceWhatCannotBeServedInTime) {
  WaitingLine line;
  const WaitingLine::Portions portions{.ids = 100, .every = milliseconds(1)};
  WaitingLine::Place first, second;
  ASSERT_FALSE(line.Join(first, 3'000, portions, kPatience, microseconds(0)));
  const auto longer = line.Join(second, 3'000, portions, kPatience, microseconds(0));
  ASSERT_TRUE(longer);
  EXPECT_EQ(*longer, microseconds(60'000 - 50'000 * 7 / 8));
  EXPECT_FALSE(second.taken());
  // Others take half of the ids: it lasts twice as long.
  line.Note(first, 2'000, milliseconds(20));
  EXPECT_TRUE(line.Join(second, 1'000, portions, kPatience, milliseconds(20)));
  EXPECT_FALSE(line.Join(second, 100, portions, kPatience, milliseconds(20)));
}

}  // namespace
}  // namespace firn
