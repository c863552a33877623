// A lessee's requests on their way to servers that misbehave.

#include "client/lease_sender.h"

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/client.h"
#include "common/time/clock.h"
#include "tests/client/fake_server.h"
#include "tests/support/process.h"

namespace firn {
namespace {

using LeaseAnswer = FakeLeases::Answer;
using Got = LeaseOutcome::Kind;
using client::LeaseSender;

const std::string kLeaseToken = "0123456789abcdef0123456789abcdef", kThisTurn(32, 'a'),
                  kLastTurn(32, 'b');

class AwaitedOutcomes final : public LeaseOutcomes {
 public:
  void Post(uint64_t number, LeaseOutcome outcome) override {
    const std::lock_guard lock(mutex_);
    EXPECT_TRUE(outcomes_.emplace(number, std::move(outcome)).second) << "a second outcome";
    posted_.notify_all();
  }
  LeaseOutcome Await(uint64_t number) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(posted_.wait_for(lock, kPatience, [&] { return outcomes_.contains(number); }));
    return outcomes_[number];
  }

 private:
  std::mutex mutex_;
  std::condition_variable posted_;
  std::map<uint64_t, LeaseOutcome> outcomes_;
};

class LeaseSenderTest : public testing::Test {
 protected:
  LeaseSenderTest() : LeaseSenderTest(3) {}
  explicit LeaseSenderTest(size_t servers) {
    for (size_t i = 0; i < servers; ++i) {
      servers_.push_back(std::make_unique<FakeServer>());
      servers_[i]->BehaveAboutLeases({.machine = static_cast<int>(i) + 1});
    }
  }

  ClientOptions options() const {
    std::vector<FakeServer*> all;
    for (const auto& server : servers_) all.push_back(server.get());
    return {.servers = ListOf(all), .tls = FakeServer::Tls()};
  }
  LeaseSender& sender() {
    if (sender_ == nullptr) sender_ = std::make_unique<LeaseSender>(options());
    return *sender_;
  }

  LeaseOutcome Ask(const LeaseRequest& request) {
    sender().Send(++number_, request, outcomes_);
    return outcomes_->Await(number_);
  }
  static LeaseRequest Grant() {
    return {.kind = LeaseRequest::Kind::kGrant,
            .clock = SystemClock().Wall(),
            .token = kLeaseToken,
            .name = "shop",
            .ahead = Milliseconds(60'000)};
  }
  static LeaseRequest Renewal(const std::string& server) {
    return {.kind = LeaseRequest::Kind::kRenew,
            .clock = SystemClock().Wall(),
            .ahead = Milliseconds(60'000),
            .lease = "L",
            .server = server,
            .turn = kThisTurn,
            .acknowledged = kLastTurn};
  }
  // All servers answer so, but this one.
  void AllBut(size_t one, LeaseAnswer answer) {
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (i != one) servers_[i]->BehaveAboutLeases({.answer = answer});
    }
  }
  std::vector<std::string> AllRequests() const {
    std::vector<std::string> all;
    for (const auto& server : servers_) {
      for (const std::string& request : server->LeaseRequests()) all.push_back(request);
    }
    return all;
  }
  // The index of the only server that has received a request.
  size_t Asked() const {
    size_t asked = servers_.size();
    for (size_t i = 0; i < servers_.size(); ++i) {
      if (servers_[i]->LeaseRequests().empty()) continue;
      EXPECT_EQ(asked, servers_.size()) << "more than one server was asked";
      asked = i;
    }
    EXPECT_LT(asked, servers_.size()) << "no server was asked";
    return asked;
  }

  std::vector<std::unique_ptr<FakeServer>> servers_;
  std::unique_ptr<LeaseSender> sender_;
  const std::shared_ptr<AwaitedOutcomes> outcomes_ = std::make_shared<AwaitedOutcomes>();
  uint64_t number_ = 0;
};

TEST_F(LeaseSenderTest, ReturnsTheTermsAndTheServerThatGrantedThem) {
  const LeaseOutcome outcome = Ask(Grant());
  ASSERT_EQ(outcome.kind, Got::kTerms) << outcome.status;
  const size_t asked = Asked();
  EXPECT_EQ(outcome.terms.server, servers_[asked]->address());
  EXPECT_EQ(outcome.terms.lease, "lease of " + kLeaseToken);
  EXPECT_EQ(outcome.terms.machine, MachineId(static_cast<uint32_t>(asked) + 1));
  EXPECT_EQ(outcome.terms.until - outcome.terms.from, 60'000);
  EXPECT_EQ(outcome.terms.renew_in, Milliseconds(20'000));
  EXPECT_EQ(CheckTerms(outcome.terms), Status());
  EXPECT_EQ(servers_[asked]->LeaseRequests(), std::vector{"lease " + kLeaseToken + " shop"});
}

TEST_F(LeaseSenderTest, RenewsAndReleasesAtTheLeasesServerOnly) {
  for (const auto& server : servers_) {
    EXPECT_EQ(Ask(Renewal(server->address())).kind, Got::kTerms);
    LeaseRequest release = Renewal(server->address());
    release.kind = LeaseRequest::Kind::kRelease;
    release.used = Tick(17);
    EXPECT_EQ(Ask(release).kind, Got::kReleased);
    EXPECT_EQ(server->LeaseRequests(), (std::vector{"renew L " + kThisTurn + " " + kLastTurn,
                                                    "release L " + kThisTurn + " 17"}));
  }
}

TEST_F(LeaseSenderTest, PassesOnWhatTheLeasesServerAnswers) {
  const auto answered = [&](LeaseAnswer answer) {
    servers_[1]->BehaveAboutLeases({.answer = answer});
    return Ask(Renewal(servers_[1]->address())).kind;
  };
  EXPECT_EQ(answered(LeaseAnswer::kUnknown), Got::kUnknown);
  EXPECT_EQ(answered(LeaseAnswer::kOutdated), Got::kOutdated);
  EXPECT_EQ(answered(LeaseAnswer::kRevoked), Got::kGone);
  EXPECT_EQ(answered(LeaseAnswer::kNoLeases), Got::kRefused);
  EXPECT_EQ(answered(LeaseAnswer::kTerms), Got::kTerms);
  EXPECT_EQ(Asked(), 1u);
}

TEST_F(LeaseSenderTest, AsksOtherServersWhenOneGrantsNoLeases) {
  for (size_t i = 0; i < servers_.size(); ++i) {
    AllBut(i, LeaseAnswer::kNoLeases);
    servers_[i]->BehaveAboutLeases({.machine = 9});
    EXPECT_EQ(Ask(Grant()).terms.machine, MachineId(9)) << i;
  }
  AllBut(servers_.size(), LeaseAnswer::kNoLeases);
  const LeaseOutcome outcome = Ask(Grant());
  EXPECT_EQ(outcome.kind, Got::kRefused);
  EXPECT_NE(outcome.status.message().find("as the test says"), std::string::npos);
}

TEST_F(LeaseSenderTest, AsksOtherServersWhenOneIsOlderThanLeases) {
  AllBut(2, LeaseAnswer::kNoMethod);
  EXPECT_EQ(Ask(Grant()).terms.machine, MachineId(3));
  AllBut(3, LeaseAnswer::kNoMethod);
  EXPECT_EQ(Ask(Grant()).kind, Got::kNoAnswer);
}

TEST_F(LeaseSenderTest, AsksOtherServersWhenOneIsNotReady) {
  for (const size_t i : {0u, 1u}) {
    servers_[i]->Behave({.kind = Behaviour::Kind::kRefuse,
                         .reason = Reason::kNotReady,
                         .retry_after = Milliseconds(700)});
  }
  EXPECT_EQ(Ask(Grant()).terms.machine, MachineId(3));
  const LeaseOutcome outcome = Ask(Renewal(servers_[1]->address()));
  EXPECT_EQ(outcome.kind, Got::kRefused);
  EXPECT_EQ(outcome.retry_in, Milliseconds(700));
}

TEST_F(LeaseSenderTest, FollowsToTheServerThatHasTheLease) {
  servers_[0]->BehaveAboutLeases(
      {.answer = LeaseAnswer::kAnotherServers, .server = servers_[2]->address()});
  const LeaseOutcome outcome = Ask(Renewal(servers_[0]->address()));
  ASSERT_EQ(outcome.kind, Got::kTerms) << outcome.status;
  EXPECT_EQ(outcome.terms.server, servers_[2]->address());

  servers_[0]->BehaveAboutLeases(
      {.answer = LeaseAnswer::kAnotherServers, .server = "10.9.9.9:7609"});
  EXPECT_EQ(Ask(Renewal(servers_[0]->address())).kind, Got::kRefused);
  // Two servers that name each other are not followed for ever.
  servers_[0]->BehaveAboutLeases(
      {.answer = LeaseAnswer::kAnotherServers, .server = servers_[2]->address()});
  servers_[2]->BehaveAboutLeases(
      {.answer = LeaseAnswer::kAnotherServers, .server = servers_[0]->address()});
  EXPECT_EQ(Ask(Renewal(servers_[0]->address())).kind, Got::kRefused);
}

TEST_F(LeaseSenderTest, AsksTheServerToAvoidOnlyIfNoOtherGrants) {
  LeaseRequest grant = Grant();
  grant.avoid = servers_[1]->address();
  for (int i = 0; i < 10; ++i) EXPECT_NE(Ask(grant).terms.machine, MachineId(2));
  AllBut(1, LeaseAnswer::kNoLeases);
  EXPECT_EQ(Ask(grant).terms.machine, MachineId(2));
}

TEST_F(LeaseSenderTest, RepeatsALostGrantAtTheServerThatMayHaveGrantedIt) {
  for (const auto& server : servers_) server->Behave(Behaviour::Kind::kHalf);
  EXPECT_EQ(Ask(Grant()).kind, Got::kNoAnswer);
  const size_t asked = Asked();
  EXPECT_EQ(Ask(Grant()).kind, Got::kNoAnswer);
  EXPECT_EQ(Asked(), asked);
  EXPECT_EQ(servers_[asked]->LeaseRequests().size(), 2u);
  // It is asked once more, and then any server.
  servers_[asked]->Down();
  for (const auto& server : servers_) server->Behave(Behaviour::Kind::kServe);
  EXPECT_EQ(Ask(Grant()).kind, Got::kTerms);
  EXPECT_EQ(AllRequests().size(), 3u);
}

TEST_F(LeaseSenderTest, RefusesTermsOfAnotherLayout) {
  for (const auto& server : servers_) server->Behave(Behaviour::Kind::kOtherLayout);
  const LeaseOutcome outcome = Ask(Grant());
  EXPECT_EQ(outcome.kind, Got::kRefused);
  EXPECT_EQ(outcome.status, Invalid("a lease of another layout than the cluster's, twitter"));
}

TEST_F(LeaseSenderTest, ARepetitionOfARequestUnderWayChangesNothing) {
  for (const auto& server : servers_) {
    server->Behave({.kind = Behaviour::Kind::kServe, .delay = Milliseconds(200)});
  }
  for (int i = 0; i < 5; ++i) sender().Send(1, Grant(), outcomes_);
  EXPECT_EQ(outcomes_->Await(1).kind, Got::kTerms);
  EXPECT_EQ(AllRequests().size(), 1u);
}

TEST_F(LeaseSenderTest, AClientOpensAGeneratorThatOutlivesIt) {
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

TEST_F(LeaseSenderTest, AClientSaysWhyThereIsNoLease) {
  AllBut(servers_.size(), LeaseAnswer::kNoLeases);
  Client client(options());
  const auto opened = client.OpenGenerator({.name = "shop"}, Milliseconds(3'000));
  EXPECT_EQ(opened.status().code(), Code::kUnavailable);
  EXPECT_NE(opened.status().message().find("as the test says"), std::string::npos)
      << opened.status();
  EXPECT_EQ(client.OpenGenerator({.name = std::string(65, 'n')}).status(),
            Invalid("the name of a lease has 65 bytes, more than 64"));
}

}  // namespace
}  // namespace firn
