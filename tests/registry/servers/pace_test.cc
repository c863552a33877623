// Tests the recent rates of servers.

#include "registry/servers/pace.h"

#include <deque>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "registry/operate/audit.h"
#include "registry/servers/pace_publisher.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

const ServerPace kSome{
    .over = Milliseconds(5'000), .ids = 70, .calls = 9, .refused = 2, .p99_us = 64};

TEST(ServerPaceTest, JsonReadsBackAsWritten) {
  EXPECT_EQ(*ParsePace(FormatPace(kSome)), kSome);
  const ServerPace idle{.over = Milliseconds(5'000)};
  EXPECT_EQ(*ParsePace(FormatPace(idle)), idle);
}

TEST(ServerPaceTest, HistoryConnectionsAndConsoleReadBackAsWritten) {
  ServerPace pace = kSome;
  pace.history = {.age = Milliseconds(-3'000), .samples = {{70, 2, 64}, {}, {5, 0, 8}}};
  pace.connections = {{"http", 1}, {"redis", 20}};
  pace.console = "http://10.0.0.7:7610/";
  EXPECT_EQ(*ParsePace(FormatPace(pace)), pace);
}

TEST(ServerPaceTest, AFullHistoryOfAFastServerFits) {
  ServerPace pace = kSome;
  pace.history.samples.resize(PaceHistory::kSamplesMax, {99'999'999, 99'999'999, 1 << 20});
  EXPECT_LE(FormatPace(pace).size(), kPaceBytesMax);
  EXPECT_EQ(*ParsePace(FormatPace(pace)), pace);
}

TEST(ServerPaceTest, OmitsAHistoryThatDoesNotFit) {
  ServerPace pace = kSome;
  pace.history.samples.resize(PaceHistory::kSamplesMax, {INT64_MAX, INT64_MAX, INT64_MAX});
  EXPECT_EQ(*ParsePace(FormatPace(pace)), kSome);
}

TEST(ServerPaceTest, RefusesInvalidHistories) {
  for (const char* text : {"1", "{}", R"({"age_ms":-10000,"ids":[],"refused":[],"p99_us":[]})",
                           R"({"age_ms":1,"ids":[1],"refused":[],"p99_us":[]})",
                           R"({"age_ms":1,"ids":[-1],"refused":[0],"p99_us":[0]})",
                           R"({"age_ms":1,"ids":["1"],"refused":[0],"p99_us":[0]})",
                           R"({"age_ms":1,"ids":{"a":1},"refused":[0],"p99_us":[0]})"}) {
    const std::string pace = FormatPace(kSome);
    EXPECT_TRUE(ParsePace(pace).ok());
    EXPECT_FALSE(ParsePace(Cat(pace.substr(0, pace.size() - 1), ",\"history\":", text, "}")).ok())
        << text;
  }
  std::string many = "0";
  for (size_t i = 0; i < PaceHistory::kSamplesMax; ++i) many += ",0";
  EXPECT_FALSE(
      ParsePace(Cat(R"({"over_ms":5,"ids":1,"calls":1,"refused":0,"history":{"age_ms":1,)",
                    "\"ids\":[", many, "],\"refused\":[", many, "],\"p99_us\":[", many, "]}}"))
          .ok());
}

TEST(ServerPaceTest, RefusesInvalidRates) {
  for (const char* text :
       {"", "{}", R"({"over_ms":0,"ids":1,"calls":1,"refused":0})",
        R"({"over_ms":5,"ids":-1,"calls":1,"refused":0})", R"({"over_ms":5,"ids":1,"calls":1})"}) {
    EXPECT_FALSE(ParsePace(text).ok()) << text;
  }
}

// Counts a server's requests to the registry.
class Counting final : public ForwardingCoordinator {
 public:
  using ForwardingCoordinator::ForwardingCoordinator;
  void Read(const std::string& path, ReadDone done, Changed changed = {}) override {
    ++asked;
    ForwardingCoordinator::Read(path, std::move(done), std::move(changed));
  }
  void Multi(std::vector<Write> writes, WriteDone done) override {
    ++asked;
    ForwardingCoordinator::Multi(std::move(writes), std::move(done));
  }
  int64_t asked = 0;
};

// Servers that can publish their rates, and viewers.
class PacePublisherTest : public testing::Test {
 protected:
  struct Server {
    Server(MemoryTree& tree, Entropy& entropy, std::string named)
        : address(std::move(named)),
          session(tree),
          publisher(registry, entropy, address, [this](BootMs now) {
            ServerPace pace = kSome;
            pace.over = now - std::exchange(measured, now);
            return pace;
          }) {
      session.OnSession([](SessionEvent) {});
    }
    const std::string address;
    BootMs measured;
    MemoryCoordinator session;
    Counting registry{session};
    PacePublisher publisher;
  };
  struct Reader {
    explicit Reader(PacePublisherTest& test) : session(test.tree_), registry(session, test.clock_) {
      EXPECT_TRUE(registry.Connect(Milliseconds(0)).ok());
    }
    Status Look() { return WantPaces(registry); }
    MemoryCoordinator session;
    BlockingCoordinator registry;
  };

  PacePublisherTest() {
    for (const std::string_view path : {std::string_view("/"), kServicePath, kPacesPath}) {
      Write made = Write::Create(std::string(path), "", Lifetime::kPersistent);
      EXPECT_TRUE(operator_.registry.Multi({made}).status.ok());
    }
    Start("h:1");
  }
  Server& Start(const std::string& address) {
    return servers_.emplace_back(tree_, entropy_, address);
  }
  void Pass(Milliseconds d) {
    const BootMs until = clock_.Boot() + d;
    do {
      clock_.Advance(Milliseconds(50));
      for (Server& server : servers_) {
        server.publisher.Tick(clock_.Boot());
        while (server.session.Dispatch(Milliseconds(0)) > 0) {
        }
      }
    } while (clock_.Boot() < until);
  }
  std::optional<Node> Stands() { return tree_.Peek(PacePath("h:1")); }
  bool IsWanted() { return tree_.Peek(kPacesWantedPath).has_value(); }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  MemoryTree tree_{clock_};
  SeededEntropy entropy_{1};
  Reader operator_{*this};
  std::deque<Server> servers_;
};

TEST_F(PacePublisherTest, WritesNothingWithoutAViewer) {
  Pass(PacePublisher::kEvery * 20);
  EXPECT_FALSE(Stands());
}

TEST_F(PacePublisherTest, PublishesRatesWhileAViewerExists) {
  Pass(PacePublisher::kEvery * 20);
  const BootMs begun = clock_.Boot();
  ASSERT_TRUE(operator_.Look().ok());
  Pass(PacePublisher::kEvery);
  ASSERT_TRUE(Stands());
  EXPECT_LE(ParsePace(Stands()->data)->over, clock_.Boot() - begun) << "only since the request";
  EXPECT_EQ(ParsePace(Stands()->data)->ids, kSome.ids);
}

TEST_F(PacePublisherTest, AnIdleServerKeepsPublishing) {
  ASSERT_TRUE(operator_.Look().ok());
  Pass(PacePublisher::kEvery * 2);
  ASSERT_TRUE(Stands());
  const WallMs before = Stands()->stat.modified;
  Pass(PacePublisher::kEvery + Milliseconds(100));
  EXPECT_GE(Stands()->stat.modified - before, PacePublisher::kEvery);
}

TEST_F(PacePublisherTest, StopsPublishingWithoutAViewer) {
  {
    Reader reader(*this);
    ASSERT_TRUE(reader.Look().ok());
    Pass(PacePublisher::kEvery * 2);
    ASSERT_TRUE(IsWanted());
  }
  EXPECT_FALSE(IsWanted()) << "the request outlives its viewer";
  const WallMs last = Stands()->stat.modified;
  Pass(PacePublisher::kEvery * 20);
  EXPECT_EQ(Stands()->stat.modified, last);
}

TEST_F(PacePublisherTest, PublishesForTheOtherViewerWhenOneLeaves) {
  ASSERT_TRUE(operator_.Look().ok());
  std::optional<Reader> other(std::in_place, *this);
  ASSERT_TRUE(other->Look().ok()) << "one request is enough";
  tree_.Expire(operator_.session.session());
  Pass(Milliseconds(0));
  ASSERT_TRUE(other->Look().ok());
  Pass(PacePublisher::kEvery);
  const WallMs before = Stands()->stat.modified;
  Pass(PacePublisher::kEvery * 2);
  EXPECT_GT(Stands()->stat.modified, before);
}

TEST_F(PacePublisherTest, RatesEndWithTheSessionAndReturnWithTheNext) {
  ASSERT_TRUE(operator_.Look().ok());
  Pass(PacePublisher::kEvery * 2);
  tree_.Expire(servers_[0].session.session());
  EXPECT_FALSE(Stands());
  Pass(PacePublisher::kEvery * 3);
  ASSERT_TRUE(Stands());
  EXPECT_EQ(Stands()->stat.ephemeral_owner, servers_[0].session.session());
}

TEST_F(PacePublisherTest, AThousandServersWithoutAViewerCauseLittleLoad) {
  constexpr int kServers = 1'000;
  while (servers_.size() < kServers) Start(Cat("h:", servers_.size() + 1));
  constexpr Milliseconds kMinutes{180'000};
  Pass(kMinutes);
  int64_t asked = 0;
  for (const Server& server : servers_) asked += server.registry.asked;
  // A server reads once per recheck interval. With a viewer, it writes nine times in this interval.
  EXPECT_LE(asked, kServers * (kMinutes / PacePublisher::kRecheckInterval + 1));
}

TEST_F(PacePublisherTest, ServersSpreadTheirFirstRates) {
  while (servers_.size() < 100) Start(Cat("h:", servers_.size() + 1));
  ASSERT_TRUE(operator_.Look().ok());
  Pass(PacePublisher::kEvery * 2);
  std::set<int64_t> moments;
  for (const Server& server : servers_) {
    ASSERT_TRUE(tree_.Peek(PacePath(server.address)));
    moments.insert(tree_.Peek(PacePath(server.address))->stat.modified.ms());
  }
  EXPECT_GT(moments.size(), 20U);
}

TEST_F(PacePublisherTest, ARequestForRatesWithoutServersCreatesNothing) {
  MemoryTree empty(clock_);
  MemoryCoordinator session(empty);
  BlockingCoordinator registry(session, clock_);
  ASSERT_TRUE(registry.Connect(Milliseconds(0)).ok());
  EXPECT_EQ(WantPaces(registry).code(), Code::kNotFound);
}

class ReadPacesTest : public PacePublisherTest {
 protected:
  void SetUp() override {
    ASSERT_TRUE(operator_.Look().ok());
    servers_.clear();
  }
  void Announce(const std::string& address, const std::string& pace) {
    audit_.providers.push_back({.provider = {.address = address}, .report = {}});
    if (pace.empty()) return;
    Write said = Write::Create(PacePath(address), pace, Lifetime::kPersistent);
    ASSERT_TRUE(operator_.registry.Multi({said}).status.ok());
  }

  Audit audit_;
};

TEST_F(ReadPacesTest, ASilentServersRatesAgeAndAnUnheardServerHasNone) {
  Announce("silent:1", FormatPace(kSome));
  Announce("new:1", "");
  Announce("strange:1", "[]");
  clock_.Advance(Milliseconds(7'000));
  Announce("serves:1", FormatPace(kSome));
  ASSERT_TRUE(ReadPaces(operator_.registry, audit_).ok());
  ASSERT_EQ(audit_.paces.size(), 2U);
  EXPECT_EQ(audit_.paces.at("serves:1").age, Milliseconds(0));
  EXPECT_GE(audit_.paces.at("silent:1").age, Milliseconds(7'000));
  EXPECT_EQ(audit_.paces.at("silent:1").pace, kSome);
}

TEST_F(ReadPacesTest, IgnoresRatesForEarlierViewers) {
  Announce("serves:1", FormatPace(kSome));
  clock_.Advance(Milliseconds(3'600'000));
  tree_.Expire(operator_.session.session());
  while (operator_.session.Dispatch(Milliseconds(0)) > 0) {
  }
  ASSERT_TRUE(operator_.Look().ok());
  ASSERT_TRUE(ReadPaces(operator_.registry, audit_).ok());
  EXPECT_TRUE(audit_.paces.empty()) << "an hour old";
  EXPECT_EQ(audit_.paces_wanted_at, clock_.Wall());
}

TEST_F(ReadPacesTest, IgnoresRatesWithoutARequest) {
  Announce("serves:1", FormatPace(kSome));
  Write away = Write::Erase(std::string(kPacesWantedPath), Write::kAnyVersion);
  ASSERT_TRUE(operator_.registry.Multi({away}).status.ok());
  ASSERT_TRUE(ReadPaces(operator_.registry, audit_).ok());
  EXPECT_TRUE(audit_.paces.empty());
  EXPECT_FALSE(audit_.paces_wanted_at);
}

}  // namespace
}  // namespace firn
