#include "registry/servers/server_roll.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "registry/servers/provider_publisher.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/seed.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// A server as reported to clients.
using Line = std::tuple<std::string, ServerPhase, int, bool>;

std::vector<Line> LinesOf(const DirectorySnapshot& snapshot) {
  std::vector<Line> lines;
  for (const DirectoryEntry* entry : OnePerAddress(snapshot)) {
    lines.emplace_back(entry->provider.address, entry->report.phase, entry->configurator.weight,
                       entry->configurator.disabled);
  }
  return lines;
}

// Delays answers on request, like an unreachable registry.
class Separable final : public ForwardingCoordinator {
 public:
  using ForwardingCoordinator::ForwardingCoordinator;
  void Read(const std::string& path, ReadDone done, Changed changed = {}) override {
    if (!away) return ForwardingCoordinator::Read(path, std::move(done), std::move(changed));
    refused.push_back(std::move(done));
  }
  int Dispatch(Milliseconds wait) override {
    for (const ReadDone& done : std::exchange(refused, {})) done(Unavailable("away"));
    return ForwardingCoordinator::Dispatch(wait);
  }
  bool away = false;
  std::vector<ReadDone> refused;
};

// Several servers that register, an operator, and readers of the list.
class ServerRollTest : public testing::Test {
 protected:
  static constexpr int kServers = 3;
  struct Reader {
    explicit Reader(MemoryTree& tree) : session(tree) {}
    MemoryCoordinator session;
    Separable registry{session};
    int told = 0;
    int64_t version = 0;
    std::vector<Line> lines;
    ServerRoll roll{registry, [this](int64_t v, const DirectorySnapshot& snapshot) {
                      ++told;
                      version = v;
                      lines = LinesOf(snapshot);
                    }};
  };
  struct Announcing {
    Announcing(MemoryTree& tree, Entropy& entropy, const std::string& address)
        : session(tree), publisher(session, entropy, {.address = address}) {
      session.OnSession([](SessionEvent) {});
    }
    MemoryCoordinator session;
    ProviderReport report;
    ProviderPublisher publisher;
  };

  ServerRollTest() {
    operator_.Dispatch(Milliseconds(0));
    Write1(Write::Create("/", "{}", Lifetime::kPersistent));
    Write1(Write::Create(std::string(kServicePath), "", Lifetime::kPersistent));
    Write1(Write::Create(std::string(kConfiguratorsPath), "", Lifetime::kPersistent));
    for (int i = 0; i < kServers; ++i) {
      servers_.push_back(std::make_unique<Announcing>(tree_, entropy_, AddressOf(i)));
    }
  }

  static std::string AddressOf(int i) { return "10.0.0." + std::to_string(i) + ":7609"; }
  static std::string WordOf(int i) { return std::string(kConfiguratorsPath) + "/" + AddressOf(i); }

  void Write1(Write write) {
    operator_.Multi({std::move(write)}, [](const WriteOutcome&) {});
    operator_.Dispatch(Milliseconds(0));
  }
  void SayWeight(int i, int weight) {
    const std::string data = FormatConfigurator({.weight = weight});
    Write1(Write::Create(WordOf(i), data, Lifetime::kPersistent));
    Write1(Write::Set(WordOf(i), data, Write::kAnyVersion));
  }
  void Report(int i, ServerPhase phase, WallMs bound = {}) {
    Announcing& server = *servers_[static_cast<size_t>(i)];
    server.report.phase = phase;
    server.report.bound = bound;
    server.publisher.Report(server.report);
  }

  // Advances the time by one step, and delivers pending answers to every client of the registry.
  void Step() {
    clock_.Advance(Milliseconds(50));
    for (const auto& server : servers_) {
      if (server == nullptr) continue;
      server->publisher.Tick(clock_.Boot());
      server->session.Dispatch(Milliseconds(0));
    }
    for (Reader* reader : {&one_, &two_}) Read(*reader);
  }
  void Read(Reader& reader) {
    reader.roll.Tick(clock_.Boot());
    reader.registry.Dispatch(Milliseconds(0));
  }
  void Pass(Milliseconds time) {
    for (const BootMs until = clock_.Boot() + time; clock_.Boot() < until;) Step();
  }
  static constexpr Milliseconds kLong{10'000};

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  const uint64_t seed_ = TestSeed();
  SeededEntropy entropy_{seed_};
  MemoryTree tree_{clock_};
  MemoryCoordinator operator_{tree_};
  std::vector<std::unique_ptr<Announcing>> servers_;
  Reader one_{tree_}, two_{tree_};
};

TEST_F(ServerRollTest, ReportsTheSameListAndVersionToAll) {
  for (int i = 0; i < kServers; ++i) Report(i, ServerPhase::kReady);
  Pass(kLong);
  EXPECT_EQ(one_.lines.size(), 3u);
  EXPECT_EQ(one_.lines, two_.lines);
  EXPECT_GT(one_.version, 0);
  EXPECT_EQ(one_.version, two_.version);
}

TEST_F(ServerRollTest, OnlyChangesThatClientsNeedRaiseTheVersion) {
  for (int i = 0; i < kServers; ++i) Report(i, ServerPhase::kReady);
  Pass(kLong);
  int64_t version = one_.version;
  const auto expect_risen = [&](const char* why) {
    Pass(kLong);
    EXPECT_GT(one_.version, version) << why;
    EXPECT_EQ(one_.version, two_.version) << why;
    version = one_.version;
  };
  Report(0, ServerPhase::kDraining);
  expect_risen("another phase");
  EXPECT_EQ(std::get<ServerPhase>(one_.lines.at(0)), ServerPhase::kDraining);
  SayWeight(1, 50);
  expect_risen("a first word");
  SayWeight(1, 20);
  expect_risen("another word");
  EXPECT_EQ(std::get<int>(one_.lines.at(1)), 20);
  servers_[2].reset();
  expect_risen("one that has gone");
  EXPECT_EQ(one_.lines.size(), 2u);

  const int told = one_.told;
  for (int64_t bound = 1; bound <= 20; ++bound) {
    Report(0, ServerPhase::kDraining, WallMs(bound));
    Report(1, ServerPhase::kReady, WallMs(bound));
    Pass(Milliseconds(2'000));
  }
  EXPECT_EQ(one_.version, version) << "bounds are raised continually";
  EXPECT_EQ(one_.told, told);
}

// All data for clients change at random, also between two answers to a reader. Equal versions must
// still mean equal lists.
TEST_F(ServerRollTest, EqualVersionsMeanEqualLists) {
  std::map<int64_t, std::vector<Line>> lists;
  const auto check = [&](const Reader& reader) {
    if (reader.version == 0) return;
    const auto [known, fresh] = lists.emplace(reader.version, reader.lines);
    EXPECT_EQ(known->second, reader.lines) << "version " << reader.version << ", seed " << seed_;
  };
  constexpr int kSteps = 20'000;
  for (int step = 0; step < kSteps && !HasFailure(); ++step) {
    // Bursts with pauses, in which a list can be read.
    if (step % 200 < 150 && entropy_.Below(4) == 0) {
      const int i = static_cast<int>(entropy_.Below(kServers));
      const uint64_t what = entropy_.Below(4);
      if (what == 0) Report(i, ServerPhase::kReady);
      if (what == 1) Report(i, ServerPhase::kDraining);
      if (what == 2) SayWeight(i, static_cast<int>(entropy_.Below(100)));
      if (what == 3) Write1(Write::Erase(WordOf(i), Write::kAnyVersion));
    }
    // A slow reader gets its answers late.
    clock_.Advance(Milliseconds(50));
    for (const auto& server : servers_) {
      server->publisher.Tick(clock_.Boot());
      server->session.Dispatch(Milliseconds(0));
    }
    for (Reader* reader : {&one_, &two_}) {
      if (entropy_.Below(3) != 0) Read(*reader);
      check(*reader);
    }
  }
  EXPECT_GT(lists.size(), 100u) << "seed " << seed_;
}

TEST_F(ServerRollTest, AnUnreachableRegistryChangesAndConfirmsNothing) {
  for (int i = 0; i < kServers; ++i) Report(i, ServerPhase::kReady);
  Pass(kLong);
  ASSERT_TRUE(one_.roll.confirmed().has_value());
  EXPECT_GE(*one_.roll.confirmed(), clock_.Boot() - Milliseconds(2'000))
      << "the registry is read every second";
  one_.registry.away = true;
  Pass(Milliseconds(1'000));
  const BootMs confirmed = *one_.roll.confirmed();
  const auto before = std::tuple(one_.told, one_.version, one_.lines);
  SayWeight(0, 7);
  Pass(kLong);
  EXPECT_EQ(std::tuple(one_.told, one_.version, one_.lines), before);
  EXPECT_EQ(*one_.roll.confirmed(), confirmed);
  one_.registry.away = false;
  Pass(kLong);
  EXPECT_EQ(std::get<int>(one_.lines.at(0)), 7);
  EXPECT_EQ(one_.version, two_.version);
  EXPECT_GT(*one_.roll.confirmed(), confirmed);
}

TEST_F(ServerRollTest, AnEmptyFolderDoesNotReplaceTheList) {
  Pass(kLong);
  for (const auto& server : servers_) tree_.Expire(server->session.session());
  for (auto& server : servers_) server.reset();
  const auto before = std::tuple(one_.told, one_.version, one_.lines);
  EXPECT_EQ(one_.lines.size(), 3u);
  Pass(kLong);
  EXPECT_EQ(std::tuple(one_.told, one_.version, one_.lines), before);
  EXPECT_LT(*one_.roll.confirmed(), clock_.Boot() - Milliseconds(5'000)) << "nor is it confirmed";
}

TEST_F(ServerRollTest, ReportsAListRestoredFromABackup) {
  for (int i = 0; i < kServers; ++i) Report(i, ServerPhase::kReady);
  Pass(kLong);
  const MemoryTree::Image image = tree_.Save();
  const int64_t version = one_.version;
  SayWeight(0, 7);
  Pass(kLong);
  ASSERT_GT(one_.version, version);
  tree_.Load(image, MemoryTree::Sessions::kStay);
  Pass(kLong);
  EXPECT_EQ(one_.version, version);
  EXPECT_EQ(std::get<int>(one_.lines.at(0)), 100);
}

}  // namespace
}  // namespace firn
