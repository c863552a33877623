// Tests how a client distributes the calls of many threads over servers.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/client/client_rig.h"

namespace firn {
namespace {

// A source that reports one list at once.
class OneList final : public ServerSource {
 public:
  explicit OneList(ServerList list) : list_(std::move(list)) {}
  Status Start(Listener on_list) override { return on_list(list_), Status(); }
  void Stop() override {}

 private:
  const ServerList list_;
};

// Three servers with given weights.
class BalanceTest : public testing::Test {
 protected:
  static constexpr int kThreads = 32;
  static constexpr int kCalls = 100;  // of each thread in a round
  // Long enough that delays by the machine hardly count.
  static constexpr Milliseconds kAnswerTime{10};
  static constexpr int kRounds = 20;

  void Weigh(const std::vector<int>& weights) {
    ServerList list{.servers = {}, .fixed = true};
    for (size_t i = 0; i < weights.size(); ++i) {
      list.servers.push_back({.address = rig_.server(i).address(), .weight = weights[i]});
    }
    rig_.options.servers = "weighed";
    rig_.options.open_source = [list](const std::string&) {
      return Result<std::unique_ptr<ServerSource>>(std::make_unique<OneList>(list));
    };
    rig_.options.servers_max = 0;
    // A fake server answers the requests of a connection one after another. With fewer connections,
    // waiting would dominate its latency. So each thread has its own connection. It also has its
    // own tag, because calls for the same tag share a connection.
    rig_.options.connections = kThreads;
    for (FakeServer* server : rig_.servers()) server->Behave({.delay = kAnswerTime});
    rig_.client();
  }

  // Returns each server's share of the calls in one round.
  std::vector<double> SharesOfARound() {
    std::vector<int64_t> before;
    for (const FakeServer* server : rig_.servers()) before.push_back(server->requests());
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < kThreads; ++i) {
        threads.emplace_back([this, tag = "order" + std::to_string(i)] {
          for (int n = 0; n < kCalls; ++n) EXPECT_TRUE(rig_.client().GetId(tag).ok());
        });
      }
    }
    std::vector<double> shares;
    for (size_t i = 0; i < before.size(); ++i) {
      shares.push_back(static_cast<double>(rig_.server(i).requests() - before[i]) /
                       (kThreads * kCalls));
    }
    return shares;
  }

  // Expects that in some round each server's share is within a tenth of the wanted one. (A server
  // that the machine delays in a round correctly gets fewer calls.)
  void ExpectWithinATenth(const std::vector<double>& wanted) {
    std::string seen;
    for (int round = 0; round < kRounds; ++round) {
      const std::vector<double> shares = SharesOfARound();
      seen += "\n ";
      bool good = true;
      for (size_t i = 0; i < wanted.size(); ++i) {
        good = good && std::abs(shares[i] - wanted[i]) <= wanted[i] / 10;
        seen += " " + std::to_string(shares[i]);
      }
      if (!good) continue;
      std::printf("balanced in round %d:%s\n", round + 1, seen.c_str());
      return;
    }
    ADD_FAILURE() << "no round was balanced:" << seen;
  }

  ClientRig rig_{3};
};

TEST_F(BalanceTest, GivesEqualServersEqualShares) {
  Weigh({100, 100, 100});
  ExpectWithinATenth({1.0 / 3, 1.0 / 3, 1.0 / 3});
}

TEST_F(BalanceTest, FollowsTheWeights) {
  Weigh({100, 200, 300});
  ExpectWithinATenth({1.0 / 6, 2.0 / 6, 3.0 / 6});
}

TEST_F(BalanceTest, GivesNothingToAServerWithoutWeight) {
  Weigh({100, 0, 100});
  EXPECT_EQ(SharesOfARound()[1], 0);
}

TEST(BalanceOfSlowServers, GivesASlowServerLess) {
  ClientRig rig(3);
  rig.options.servers_max = 0;
  rig.server(0).Behave({.delay = Milliseconds(100)});
  rig.client();
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 8; ++i) {
      threads.emplace_back([&rig] {
        for (int n = 0; n < 100; ++n) EXPECT_TRUE(rig.client().GetId("order").ok());
      });
    }
  }
  EXPECT_LT(rig.server(0).requests() * 2,
            std::min(rig.server(1).requests(), rig.server(2).requests()));
}

}  // namespace
}  // namespace firn
