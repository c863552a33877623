#include <algorithm>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/url_encoding.h"
#include "common/time/entropy.h"
#include "registry/servers/directory.h"
#include "registry/servers/provider_publisher.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// A server that registers, a client that watches, and the registry that both use.
class DiscoveryTest : public testing::Test {
 protected:
  DiscoveryTest() {
    server_.OnSession([](SessionEvent) {});
    client_.OnSession([](SessionEvent) {});
    client_.Dispatch(Milliseconds(0));
    Put("/", "{}");
  }

  void Pass(Milliseconds d) {
    const BootMs until = clock_.Boot() + d;
    do {
      clock_.Advance(Milliseconds(50));
      publisher_->Tick(clock_.Boot());
      directory_.Tick(clock_.Boot());
      while (server_.Dispatch(Milliseconds(0)) + client_.Dispatch(Milliseconds(0)) > 0) {
      }
    } while (clock_.Boot() < until);
  }

  void Report(ServerPhase phase) {
    report_.phase = phase;
    publisher_->Report(report_);
  }

  void Put(const std::string& path, const std::string& data) {
    client_.Multi({Write::Create(path, data, Lifetime::kPersistent)},
                  [&](const WriteOutcome& outcome) { EXPECT_TRUE(outcome.status.ok()); });
    Pass(Milliseconds(0));
  }

  // Creates and changes nodes next to the publisher's own.
  void PutProviders(int count) {
    for (int i = 0; i < count; ++i) Put(PathOf(i), FormatReport({}));
    Pass(Milliseconds(1000));
  }
  void ChangePhase(int i) {
    client_.Multi({Write::Set(PathOf(i), FormatReport({.phase = ServerPhase::kDraining}),
                              Write::kAnyVersion)},
                  [](const WriteOutcome& outcome) { EXPECT_TRUE(outcome.status.ok()); });
  }
  static std::string PathOf(int i) {
    return std::string(kProvidersPath) + "/" +
           ProviderNodeName({.address = "10.0.0.1:" + std::to_string(1000 + i)});
  }

  std::string NodePath() const {
    return std::string(kProvidersPath) + "/" + ProviderNodeName(provider_);
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{11};
  MemoryTree tree_{clock_};
  MemoryCoordinator server_{tree_};
  MemoryCoordinator client_{tree_};
  const Provider provider_{.address = "127.0.0.1:7609", .application = "firn", .build = "test"};
  ProviderReport report_;
  std::unique_ptr<ProviderPublisher> publisher_ =
      std::make_unique<ProviderPublisher>(server_, entropy_, provider_);
  int told_ = 0;
  DirectorySnapshot seen_;
  Directory directory_{client_, entropy_, [this](const DirectorySnapshot& snapshot) {
                         ++told_;
                         seen_ = snapshot;
                       }};
};

TEST_F(DiscoveryTest, AServerAppearsWithItsReport) {
  report_.machine = MachineId(5);
  Report(ServerPhase::kReady);
  Pass(Milliseconds(5000));
  ASSERT_EQ(seen_.entries.size(), 1u);
  EXPECT_EQ(seen_.entries[0].provider, provider_);
  EXPECT_EQ(seen_.entries[0].report, report_);
  EXPECT_TRUE(publisher_->published());
}

TEST_F(DiscoveryTest, ReportsAChangeOfPhaseAndNothingWithoutAChange) {
  Report(ServerPhase::kReady);
  Pass(Milliseconds(5000));
  const int told_before = told_;
  Report(ServerPhase::kDraining);
  Pass(Milliseconds(500));
  EXPECT_EQ(seen_.entries.at(0).report.phase, ServerPhase::kDraining);
  EXPECT_EQ(told_, told_before + 1);
  Pass(Milliseconds(200'000));
  EXPECT_EQ(told_, told_before + 1);
}

TEST_F(DiscoveryTest, ReportsABurstOfChangesOnce) {
  Pass(Milliseconds(5000));
  PutProviders(30);
  const int told_before = told_;
  for (int i = 0; i < 30; ++i) ChangePhase(i);
  Pass(Milliseconds(1000));
  EXPECT_EQ(told_, told_before + 1);
}

TEST_F(DiscoveryTest, ReportsDuringAnEndlessBurst) {
  Pass(Milliseconds(5000));
  PutProviders(30);
  const int told_before = told_;
  // Notifications arrive every 50 ms, within the merge interval.
  for (int i = 0; i < 30; ++i) {
    ChangePhase(i);
    Pass(Milliseconds(0));
  }
  EXPECT_GE(told_, told_before + 30 * 50 / 200) << "by the time the burst ends";
  EXPECT_LE(told_, told_before + 30 * 50 / 100 + 1);
}

TEST_F(DiscoveryTest, AFrequentlySetNodeSkipsTheUnguardedVersion) {
  Pass(Milliseconds(5000));
  tree_.SetVersion(NodePath(), -2);
  Pass(ProviderPublisher::kRecheckInterval + Milliseconds(5000));
  for (const ServerPhase phase : {ServerPhase::kReady, ServerPhase::kDraining}) {
    Report(phase);
    Pass(Milliseconds(500));
    EXPECT_EQ(seen_.entries.at(0).report.phase, phase);
    EXPECT_GE(tree_.Peek(NodePath())->stat.version, 0);
  }
}

TEST_F(DiscoveryTest, TheNewSessionRecreatesAnExpiredSessionsNode) {
  Pass(Milliseconds(5000));
  tree_.Expire(server_.session());
  Pass(Milliseconds(5000));
  EXPECT_EQ(tree_.Peek(NodePath())->stat.ephemeral_owner, server_.session());
  EXPECT_EQ(seen_.entries.size(), 1u);
}

TEST_F(DiscoveryTest, AnnouncesOneServerAtOnceAndSpreadsAClusterOverASecond) {
  std::deque<MemoryCoordinator> sessions;
  std::deque<ProviderPublisher> servers;
  std::vector<std::string> paths;
  Pass(Milliseconds(5000));  // the folders exist by then
  for (int i = 0; i < 40; ++i) {
    const Provider provider{.address = "10.0.0.1:" + std::to_string(1000 + i)};
    paths.push_back(std::string(kProvidersPath) + "/" + ProviderNodeName(provider));
    sessions.emplace_back(tree_).OnSession([](SessionEvent) {});
    servers.emplace_back(sessions.back(), entropy_, provider);
  }
  const auto step = [&] {
    Pass(Milliseconds(10));
    for (auto& session : sessions) session.Dispatch(Milliseconds(0));
    for (auto& server : servers) server.Tick(clock_.Boot());
    for (auto& session : sessions) session.Dispatch(Milliseconds(0));
  };
  const auto count = [&] {
    return std::count_if(paths.begin(), paths.end(),
                         [&](const std::string& path) { return tree_.Peek(path).has_value(); });
  };
  const auto steps_with_news = [&] {
    int news = 0;
    for (int i = 0; i < 60; ++i) {
      const auto before = count();
      step();
      news += count() > before ? 1 : 0;
    }
    EXPECT_EQ(count(), 40);
    return news;
  };
  EXPECT_LE(steps_with_news(), 1);  // the first announcement

  for (const std::string& path : paths) {
    client_.Multi({Write::Erase(path, Write::kAnyVersion)}, [](const WriteOutcome&) {});
  }
  EXPECT_EQ(count(), 0);
  EXPECT_GE(steps_with_news(), 5);

  for (auto& session : sessions) tree_.Expire(session.session());
  EXPECT_EQ(count(), 0);
  EXPECT_GE(steps_with_news(), 5);
}

TEST_F(DiscoveryTest, RecreatesANodeDeletedByHand) {
  Pass(Milliseconds(5000));
  client_.Multi({Write::Erase(NodePath(), Write::kAnyVersion)}, [](const WriteOutcome&) {});
  Pass(Milliseconds(5000));
  EXPECT_TRUE(tree_.Peek(NodePath()).has_value());
}

TEST_F(DiscoveryTest, ReplacesADeadProcessesNode) {
  auto dead = std::make_unique<MemoryCoordinator>(tree_);
  dead->OnSession([](SessionEvent) {});
  dead->Dispatch(Milliseconds(0));
  client_.Multi({Write::Create(std::string(kServicePath), "", Lifetime::kPersistent)},
                [](const WriteOutcome&) {});
  client_.Multi({Write::Create(std::string(kProvidersPath), "", Lifetime::kPersistent)},
                [](const WriteOutcome&) {});
  dead->Multi({Write::Create(NodePath(), "stale", Lifetime::kEphemeral)},
              [](const WriteOutcome&) {});
  dead->Abandon();
  dead.reset();
  Pass(Milliseconds(5000));
  EXPECT_EQ(tree_.Peek(NodePath())->stat.ephemeral_owner, server_.session());
  EXPECT_NE(tree_.Peek(NodePath())->data, "stale");
}

TEST_F(DiscoveryTest, AWithdrawnServerIsNotAnnouncedAgain) {
  Pass(Milliseconds(5000));
  Status withdrawn = Internal("not told");
  publisher_->Withdraw([&](Status status) { withdrawn = std::move(status); });
  Pass(Milliseconds(100'000));
  EXPECT_TRUE(withdrawn.ok()) << withdrawn;
  EXPECT_FALSE(tree_.Peek(NodePath()).has_value());
  EXPECT_TRUE(seen_.entries.empty());
}

TEST_F(DiscoveryTest, WithdrawWithoutASessionReportsOnce) {
  struct Leaving final : ForwardingCoordinator {
    using ForwardingCoordinator::ForwardingCoordinator;
    int64_t session() const override { return gone ? 0 : ForwardingCoordinator::session(); }
    bool gone = false;
  };
  Leaving registry(server_);
  publisher_ = std::make_unique<ProviderPublisher>(registry, entropy_, provider_);
  Pass(Milliseconds(5000));
  Report(ServerPhase::kReady);
  publisher_->Tick(clock_.Boot());  // with a pending write
  registry.gone = true;
  int told = 0;
  publisher_->Withdraw([&](const Status& status) {
    ++told;
    EXPECT_EQ(status.code(), Code::kUnavailable) << status;
  });
  Pass(Milliseconds(5000));
  EXPECT_EQ(told, 1);
  publisher_.reset();
}

TEST_F(DiscoveryTest, AnswersToADestroyedPublisherAreDropped) {
  publisher_->Tick(clock_.Boot() + Milliseconds(60'000));
  publisher_ = std::make_unique<ProviderPublisher>(server_, entropy_, provider_);
  Pass(Milliseconds(5000));
  EXPECT_TRUE(publisher_->published());
}

TEST_F(DiscoveryTest, ReportsTheOperatorsSettingWithTheServer) {
  Pass(Milliseconds(5000));
  Put(std::string(kConfiguratorsPath), "");
  Put(std::string(kConfiguratorsPath) + "/" + UrlEncode(provider_.address),
      FormatConfigurator({.weight = 7, .disabled = true}));
  Pass(Milliseconds(70'000));
  EXPECT_EQ(seen_.entries.at(0).configurator, (Configurator{.weight = 7, .disabled = true}));
}

TEST_F(DiscoveryTest, SkipsForeignNodesWithASentenceEach) {
  Pass(Milliseconds(5000));
  Put(std::string(kProvidersPath) + "/garbage", "");
  Put(std::string(kProvidersPath) + "/" +
          ProviderNodeName({.address = "127.0.0.1:1", .application = "x", .build = "y"}),
      "{torn");
  Pass(Milliseconds(1000));
  EXPECT_EQ(seen_.entries.size(), 1u);
  EXPECT_EQ(seen_.skipped.size(), 2u);
}

}  // namespace
}  // namespace firn
