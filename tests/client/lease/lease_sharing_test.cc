// Tests generators together with their client.

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>

#include "client/client.h"
#include "client/source/list_source.h"
#include "tests/client/lease/lease_sender_rig.h"
#include "tests/support/process.h"

namespace firn {
namespace {

using LeaseSharingTest = LeaseSenderTest;

TEST_F(LeaseSharingTest, ChangesNothingForIds) {
  Share(options());
  for (const auto kind : {Behaviour::Kind::kClose, Behaviour::Kind::kGarbage}) {
    for (const auto& server : servers_) server->Behave(kind);
    for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask(Grant()).kind, Got::kNoAnswer);
  }
  for (const auto& server : servers_) {
    server->Behave({.kind = Behaviour::Kind::kRefuse,
                    .reason = Reason::kNotReady,
                    .retry_after = Milliseconds(60'000),
                    .another_may_help = true});
  }
  for (int i = 0; i < 20; ++i) EXPECT_EQ(Ask(Grant()).kind, Got::kRefused);
  for (const SeenServer& server : engine_->View().servers) {
    EXPECT_EQ(server.health, ServerHealth::kHealthy) << server.why;
    EXPECT_EQ(server.latency.count(), 0);
    EXPECT_EQ(server.in_flight, 0);
  }
  const ClientCounters counters = engine_->counters();
  EXPECT_EQ(counters.calls + counters.failed + counters.attempts, 0u);
  EXPECT_EQ(counters.retries + counters.retries_denied + counters.free_retries, 0u);
  engine_->Close();
}

TEST_F(LeaseSharingTest, AnOpenedConnectionEndsARowOfFailures) {
  Share(options());
  FakeServer& server = *servers_[0];
  for (int i = 0; i < 4; ++i) {
    server.Down();
    EXPECT_EQ(Ask(Renewal(server.address())).kind, Got::kNoAnswer);
    server.Up();
    EXPECT_EQ(Ask(Renewal(server.address())).kind, Got::kTerms);
  }
  EXPECT_EQ(engine_->counters().ejections, 0u);
  engine_->Close();
}

// No other server can extend the lease.
TEST_F(LeaseSharingTest, RenewsAtAServerThatHasSentCallsInvalidAnswers) {
  ClientOptions watched = options();
  std::atomic<int> reports = 0;
  watched.on_event = [&reports](const ClientEvent& event) {
    if (event.kind == ClientEvent::Kind::kNoServer) ++reports;
  };
  Share(watched);
  FakeServer& server = *servers_[0];
  server.Behave(Behaviour::Kind::kGarbage);
  const auto quarantined = [&] {
    static_cast<void>(engine_->Call({.tag = "order"}, engine_->DeadlineOf({}), nullptr));
    const auto seen = engine_->View().servers;
    return std::ranges::any_of(
        seen, [](const auto& one) { return one.health == ServerHealth::kQuarantined; });
  };
  ASSERT_TRUE(Eventually(kPatience, quarantined));
  server.Behave({});
  EXPECT_EQ(Ask(Renewal(server.address())).kind, Got::kTerms);
  EXPECT_EQ(Ask(Renewal("10.1.2.3:7609")).kind, Got::kNoAnswer);
  EXPECT_EQ(reports, 0) << "the other servers serve";
  engine_->Close();
}

TEST_F(LeaseSharingTest, GeneratorsUseTheServerListOfTheirClient) {
  ClientOptions counted = options();
  int opened = 0;
  counted.open_source = [&opened](const std::string& servers) {
    ++opened;
    return OpenListSource(servers);
  };
  Client client(counted);
  const auto one = client.OpenGenerator({.name = "shop"}, kPatience);
  const auto two = client.OpenGenerator({.name = "shop"}, kPatience);
  EXPECT_TRUE(one.ok() && two.ok()) << one.status() << two.status();
  EXPECT_EQ(opened, 1);
}

TEST_F(LeaseSharingTest, ReportsNoEventAfterItsClientIsDestroyed) {
  ClientOptions watched = options();
  std::atomic<int> events = 0;
  watched.on_event = [&events](const ClientEvent&) { ++events; };
  for (const auto& server : servers_) server->Down();
  Share(watched);
  EXPECT_GT(events, 0) << "the list";
  engine_->Close();
  events = 0;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    EXPECT_EQ(Ask(Grant()).kind, Got::kNoAnswer);
    return engine_->counters().ejections > 0;
  }));
  EXPECT_EQ(events, 0);
}

TEST_F(LeaseSharingTest, AnswersNoFetchAfterItsClientIsDestroyed) {
  for (const auto& server : servers_) server->Behave(Behaviour::Kind::kSilent);
  Share(options());
  std::atomic<bool> answered = false;
  engine_->Fetch("order", 10, [&](const auto&) { answered = true; });
  engine_->Close();
  // This call ends after the fetch, on the same thread.
  EXPECT_FALSE(engine_
                   ->Call({.tag = "order"},
                          engine_->DeadlineOf({.deadline = 3 * options().deadline}), nullptr)
                   .ok());
  EXPECT_FALSE(answered);
}

TEST_F(LeaseSharingTest, AClientOpensAGeneratorThatOutlivesIt) {
  auto client = std::make_unique<Client>(options());
  Result<std::unique_ptr<LocalGenerator>> opened =
      client->OpenGenerator({.name = "shop"}, kPatience);
  ASSERT_TRUE(opened.ok()) << opened.status();
  client.reset();
  const std::unique_ptr<LocalGenerator> generator = *std::move(opened);
  const size_t asked = Asked();
  const Result<int64_t> id = generator->Next();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(Layout::Firn().Unpack(*id)->machine, MachineId(static_cast<uint32_t>(asked) + 1));
}

TEST_F(LeaseSharingTest, AClientSaysWhyThereIsNoLease) {
  AllBut(servers_.size(), LeaseAnswer::kNoLeases);
  Client client(options());
  const auto opened = client.OpenGenerator({.name = "shop"}, Milliseconds(3'000));
  EXPECT_EQ(opened.status().code(), Code::kUnavailable);
  EXPECT_NE(opened.status().message().find("as the test says"), std::string::npos)
      << opened.status();
}

TEST_F(LeaseSharingTest, AClientRefusesOptionsThatNoServerAccepts) {
  Client client(options());
  for (const std::string& name : {std::string(), std::string(65, 'n'), std::string("a shop"),
                                  std::string("a\n"), std::string("caf\xc3\xa9")}) {
    EXPECT_EQ(client.OpenGenerator({.name = name}).status(),
              Invalid("the name of a lease must have 1 to 64 letters, digits or characters of "
                      "-_.:/@"));
  }
  for (const int64_t ahead : {0, 1'999, 86'400'001}) {
    EXPECT_EQ(client.OpenGenerator({.name = "shop", .ahead = Milliseconds(ahead)}).status(),
              Invalid("`ahead` of a lease is " + std::to_string(ahead) +
                      " ms; it must be 2000 to 86400000 ms"));
  }
  EXPECT_TRUE(AllRequests().empty());
  for (const int64_t ahead : {2'000, 86'400'000}) {
    EXPECT_TRUE(
        client
            .OpenGenerator({.name = std::string(64, 'n'), .ahead = Milliseconds(ahead)}, kPatience)
            .ok());
  }
}

}  // namespace
}  // namespace firn
