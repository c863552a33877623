#include "server/issue/waiting_line.h"

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/id/id_clock.h"
#include "common/time/entropy.h"
#include "server/issue/issuer.h"
#include "server/issue/patient_caller.h"
#include "server/issue/snowflake/snowflake_lanes.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{50};
constexpr int64_t kIdsOfATick = 4096;
constexpr int64_t kMany = 100'000;  // ids of 25 ticks

class Quiet final : public RejectionHandler {
 public:
  void OnRefusal(const Request&, const Refusal&) override {}
};

// Clients that request many ids of one tag. Time passes in ticks, in each of which every waiting
// call is tried once, the last one first.
class WaitingLineTest : public testing::Test {
 protected:
  struct Client {
    std::string name{};
    IssueCall call{};
    bool waits = false;
    int64_t until_ms = 0;
    int64_t not_before_ms = 0;
    int served = 0;
  };

  WaitingLineTest() { Serve(1); }

  // From now on, `lanes` machine ids serve.
  void Serve(uint32_t lanes) {
    lanes_.clear();
    for (uint32_t i = 0; i < lanes; ++i) {
      auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(5 + i), clock_.Wall());
      claim->ExtendTo(clock_.Wall() + Milliseconds(10'000'000));
      lanes_.push_back(std::make_shared<Snowflake>(ticks_, entropy_));
      EXPECT_EQ(lanes_.back()->Adopt(claim), Status());
    }
    EXPECT_EQ(issuer_.Set({"order", std::make_shared<SnowflakeLanes>(lanes_), {}}), Status());
  }

  int64_t now() const { return clock_.Boot().ms(); }

  static int64_t Got(const Client& client) {
    return client.call.request().count - client.call.place->missing;
  }

  Verdict Begin(Client& client, int64_t count = kMany, milliseconds patience = kPatience) {
    client.call.Begin(*issuer_.Resolve("order"), {.tag = "order", .count = count});
    client.until_ms = now() + patience.count();
    return Try(client);
  }

  Verdict Try(Client& client) {
    client.call.patience = milliseconds(client.until_ms - now());
    const Verdict verdict = issuer_.Issue(client.call);
    client.waits = verdict == Verdict::kWait;
    if (verdict == Verdict::kIssued) {
      ++client.served;
      order_ += client.name;
    }
    if (client.waits && now() >= client.until_ms) {
      issuer_.GiveUp(client.call);
      client.waits = false;
      ++timed_out_;
    }
    return verdict;
  }

  void Tick() { clock_.Advance(Milliseconds(1)); }

  // Lets all of them call repeatedly. Returns how many calls are served in a second.
  int ServedOf(size_t clients, int64_t others_ids = 0) {
    std::vector<Client> all(clients);
    for (int tick = 0; tick < 1'000; ++tick) {
      Tick();
      if (others_ids != 0) {
        IssueCall other(*issuer_.Resolve("order"), {.tag = "order", .count = others_ids});
        EXPECT_EQ(issuer_.Issue(other), Verdict::kIssued);
      }
      for (size_t i = all.size(); i-- > 0;) {
        Client& client = all[i];
        if (!client.waits && now() < client.not_before_ms) continue;
        if ((client.waits ? Try(client) : Begin(client)) != Verdict::kRefused) continue;
        EXPECT_EQ(client.call.refusal().reason, Reason::kOverloaded);
        EXPECT_GT(client.call.refusal().retry_after_ms, 0);
        client.not_before_ms = now() + client.call.refusal().retry_after_ms;
      }
    }
    int served = 0;
    for (const Client& client : all) served += client.served;
    return served;
  }

  VirtualClock clock_{WallMs(1'735'689'600'000)};
  IdClock id_clock_;
  TickSource ticks_{Layout::Firn(), id_clock_, clock_, false};
  SeededEntropy entropy_{1};
  std::vector<std::shared_ptr<Snowflake>> lanes_;
  Quiet rejections_;
  Issuer issuer_{rejections_, clock_};
  std::string order_;  // in which clients with names were served
  int timed_out_ = 0;
};

TEST_F(WaitingLineTest, ManyClientsTogetherGetAsManyIdsAsOne) {
  const int one = ServedOf(1);
  EXPECT_GE(one, 38);
  for (const size_t clients : {8u, 200u}) {
    EXPECT_GE(ServedOf(clients), one - 2) << clients << " clients";
  }
  EXPECT_EQ(timed_out_, 0);
}

TEST_F(WaitingLineTest, UsesEveryMachineId) {
  const int one = ServedOf(1);
  Serve(4);
  EXPECT_GE(ServedOf(200), 4 * (one - 2));
  EXPECT_EQ(timed_out_, 0);
}

TEST_F(WaitingLineTest, AdmitsByTheMeasuredRate) {
  const int64_t taken_by_others = kIdsOfATick * 3 / 8;
  const int one = ServedOf(1, taken_by_others);
  timed_out_ = 0;
  EXPECT_GE(ServedOf(200, taken_by_others), one - 4);
  EXPECT_LE(timed_out_, 2) << "before the rate is known";
}

TEST_F(WaitingLineTest, ServesInOrderOfArrival) {
  std::vector<Client> all(3);
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].name = std::string(1, static_cast<char>('a' + i));
    ASSERT_EQ(Begin(all[i], 3 * kIdsOfATick), Verdict::kWait);
  }
  for (int tick = 0; tick < 20; ++tick) {
    Tick();
    for (size_t i = all.size(); i-- > 0;) {
      if (all[i].waits) Try(all[i]);
    }
  }
  EXPECT_EQ(order_, "abc");
}

TEST_F(WaitingLineTest, ServesSmallCallsMeanwhile) {
  std::vector<Client> all(2);
  for (Client& client : all) Begin(client);
  Tick();
  Client small;
  EXPECT_EQ(Begin(small, 100), Verdict::kIssued);
}

TEST_F(WaitingLineTest, RefusesACallAtOnceIfItCannotBeServedInTime) {
  Client first, second, third;
  EXPECT_EQ(Begin(first, 60 * kIdsOfATick), Verdict::kRefused) << "not even if it is alone";
  EXPECT_TRUE(first.call.runs().empty());
  EXPECT_EQ(Begin(first), Verdict::kWait);
  EXPECT_EQ(Begin(second), Verdict::kRefused);
  EXPECT_TRUE(second.call.runs().empty());
  EXPECT_GE(second.call.refusal().retry_after_ms, 1);
  EXPECT_EQ(Begin(second, kMany, 2 * kPatience), Verdict::kWait);
  EXPECT_EQ(Begin(third, 2 * kIdsOfATick, milliseconds(0)), Verdict::kRefused)
      << "as in a transaction that has waited";
}

// All ways in which a call ends. The next one in the line gets its turn.
TEST_F(WaitingLineTest, ACallThatEndsLeavesItsPlace) {
  Client next;
  const auto turn_comes = [&] {
    Tick();
    Try(next);
    return Got(next) > 0;
  };
  {
    Client destroyed;
    Begin(destroyed, 3 * kIdsOfATick);
    Begin(next, 3 * kIdsOfATick);
    EXPECT_FALSE(turn_comes());
  }
  EXPECT_TRUE(turn_comes());

  Client given_up;
  Begin(given_up, 3 * kIdsOfATick);
  Begin(next, 3 * kIdsOfATick);
  issuer_.GiveUp(given_up.call);
  EXPECT_TRUE(turn_comes());

  Client reused;
  Begin(reused, 3 * kIdsOfATick);
  Begin(next, 3 * kIdsOfATick);
  reused.call.Begin({.tag = "another"});
  EXPECT_TRUE(turn_comes());
}

TEST_F(WaitingLineTest, ACallThatIsNotTriedAgainLosesItsPlaceAtItsTimeout) {
  Client paused, next;
  Begin(paused, 3 * kIdsOfATick);
  Begin(next, 3 * kIdsOfATick, 2 * kPatience);
  clock_.Advance(kPatience + Milliseconds(1));
  Try(next);
  EXPECT_GT(Got(next), 0);
}

TEST_F(WaitingLineTest, EveryAttemptServesTheFirstCall) {
  Client first, other;
  Begin(first, 20 * kIdsOfATick);
  for (int tick = 0; tick < 20; ++tick) {
    Tick();
    EXPECT_EQ(Begin(other, 60 * kIdsOfATick), Verdict::kRefused);
  }
  EXPECT_EQ(Try(first), Verdict::kIssued) << "at its second attempt";
}

TEST_F(WaitingLineTest, ThreadsGetDifferentRisingIds) {
  const Clock& clock = SystemClock();
  IdClock id_clock;
  TickSource ticks(Layout::Firn(), id_clock, clock);
  std::vector<std::shared_ptr<Snowflake>> lanes;
  for (const uint32_t machine : {1u, 2u}) {
    auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(machine), clock.Wall());
    claim->ExtendTo(clock.Wall() + Milliseconds(10'000'000));
    lanes.push_back(std::make_shared<Snowflake>(ticks, entropy_));
    ASSERT_EQ(lanes.back()->Adopt(claim), Status());
  }
  ASSERT_EQ(issuer_.Set({"order", std::make_shared<SnowflakeLanes>(lanes), {}}), Status());
  std::vector<std::vector<IdRun>> got(4);
  std::vector<std::thread> threads;
  for (auto& runs : got) {
    threads.emplace_back([&] {
      PatientCaller caller(issuer_, clock, Milliseconds(10'000));
      for (int i = 0; i < 5; ++i) {
        IssueCall call(*issuer_.Resolve("order"), {.tag = "order", .count = 3 * kIdsOfATick + 1});
        if (!caller.Issue(call)) continue;
        EXPECT_EQ(call.runs().count(), 3 * kIdsOfATick + 1);
        int64_t before = 0;
        for (const IdRun& run : call.runs().runs()) {
          EXPECT_GT(run.first, before);
          before = run.last();
          runs.push_back(run);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::map<int64_t, int64_t> all;  // from first to last
  for (const auto& runs : got) {
    EXPECT_FALSE(runs.empty());
    for (const IdRun& run : runs) EXPECT_TRUE(all.emplace(run.first, run.last()).second);
  }
  int64_t before = 0;
  for (const auto& [first, last] : all) {
    EXPECT_GT(first, before);
    before = last;
  }
}

TEST_F(WaitingLineTest, WaitingCallsAreRefusedForTheirStrategysReasons) {
  Client first, second;
  Begin(first, 3 * kIdsOfATick);
  Begin(second, 3 * kIdsOfATick);
  lanes_[0]->CloseClaim();
  EXPECT_EQ(Try(second), Verdict::kRefused);
  EXPECT_EQ(second.call.refusal().reason, Reason::kNotReady);

  Serve(1);
  Begin(first, 3 * kIdsOfATick);
  Begin(second, 3 * kIdsOfATick);
  issuer_.Drain();
  EXPECT_EQ(Try(second), Verdict::kRefused);
  EXPECT_EQ(second.call.refusal().reason, Reason::kDraining);
}

TEST_F(WaitingLineTest, MovesToAnotherLaneWhenItsLaneEnds) {
  Serve(2);
  std::vector<Client> all(3);
  for (Client& client : all) ASSERT_EQ(Begin(client, 3 * kIdsOfATick), Verdict::kWait);
  const size_t waiting = lanes_[0]->waiting();
  EXPECT_EQ(waiting + lanes_[1]->waiting(), 3u);
  lanes_[0]->CloseClaim();
  for (int tick = 0; tick < 20; ++tick) {
    Tick();
    for (Client& client : all) {
      if (client.waits) Try(client);
    }
  }
  for (const Client& client : all) EXPECT_EQ(client.served, 1);
  EXPECT_EQ(lanes_[0]->waiting() + lanes_[1]->waiting(), 0u);
}

}  // namespace
}  // namespace firn
