// Tests a lessee's requests to servers that misbehave.

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/client/lease/lease_sender_rig.h"

namespace firn {
namespace {

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

TEST_F(LeaseSenderTest, ReturnsTheAnswerOfTheLeasesServer) {
  const auto answered = [&](LeaseAnswer answer) {
    servers_[1]->BehaveAboutLeases({.answer = answer});
    return Ask(Renewal(servers_[1]->address())).kind;
  };
  EXPECT_EQ(answered(LeaseAnswer::kUnknown), Got::kUnknown);
  EXPECT_EQ(answered(LeaseAnswer::kOutdated), Got::kOutdated);
  EXPECT_EQ(answered(LeaseAnswer::kRevoked), Got::kGone);
  EXPECT_EQ(answered(LeaseAnswer::kNoLeases), Got::kNotExtended);
  EXPECT_EQ(answered(LeaseAnswer::kLaterFault), Got::kNotExtended);
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
                         .retry_after = Milliseconds(700),
                         .another_may_help = true});
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
  EXPECT_EQ(Ask(Renewal(servers_[0]->address())).kind, Got::kNoAnswer);
}

TEST_F(LeaseSenderTest, FollowsAtMostTwice) {
  const auto name = [&](size_t one, size_t another) {
    servers_[one]->BehaveAboutLeases(
        {.answer = LeaseAnswer::kAnotherServers, .server = servers_[another]->address()});
  };
  name(0, 1);
  name(1, 2);
  const LeaseOutcome outcome = Ask(Renewal(servers_[0]->address()));
  ASSERT_EQ(outcome.kind, Got::kTerms) << outcome.status;
  EXPECT_EQ(outcome.terms.server, servers_[2]->address());
  EXPECT_EQ(AllRequests().size(), 3u);

  name(2, 0);
  EXPECT_EQ(Ask(Renewal(servers_[0]->address())).kind, Got::kNoAnswer);
  EXPECT_EQ(AllRequests().size(), 6u);
}

TEST_F(LeaseSenderTest, RenewsAtTheServerThatTheTermsNameIfItIsListed) {
  for (const auto& server : servers_) {
    server->BehaveAboutLeases({.named = servers_[1]->address()});
  }
  EXPECT_EQ(Ask(Grant()).terms.server, servers_[1]->address());
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
  // The request is retried there once, then at any other server.
  servers_[asked]->Down();
  for (const auto& server : servers_) server->Behave(Behaviour::Kind::kServe);
  EXPECT_EQ(Ask(Grant()).kind, Got::kTerms);
  EXPECT_EQ(AllRequests().size(), 3u);
}

TEST_F(LeaseSenderTest, RepeatsAGrantAtTheServerThatIsClaimingAMachineId) {
  for (const auto& server : servers_) server->BehaveAboutLeases({.answer = LeaseAnswer::kClaiming});
  for (int i = 0; i < 4; ++i) {
    const LeaseOutcome outcome = Ask(Grant());
    EXPECT_EQ(outcome.kind, Got::kRefused);
    EXPECT_FALSE(outcome.for_good);
    EXPECT_EQ(outcome.retry_in, Milliseconds(700));
  }
  const auto asked = [](const auto& server) { return !server->LeaseRequests().empty(); };
  ASSERT_EQ(std::count_if(servers_.begin(), servers_.end(), asked), 1);
  (*std::find_if(servers_.begin(), servers_.end(), asked))->BehaveAboutLeases({});
  EXPECT_EQ(Ask(Grant()).kind, Got::kTerms);
  EXPECT_EQ(AllRequests().size(), 5u);
}

TEST_F(LeaseSenderTest, SaysWhetherARefusalIsFinal) {
  LeaseRequest release = Renewal(servers_[1]->address());
  release.kind = LeaseRequest::Kind::kRelease;
  release.used = Tick(17);
  for (const auto& [reason, for_good] :
       {std::pair(Reason::kBadRequest, true), std::pair(Reason::kRejected, true),
        std::pair(Reason::kNotReady, false), std::pair(Reason::kInternal, false)}) {
    servers_[1]->Behave({.kind = Behaviour::Kind::kRefuse, .reason = reason});
    const LeaseOutcome outcome = Ask(release);
    EXPECT_EQ(outcome.kind, Got::kRefused) << ReasonName(reason);
    EXPECT_EQ(outcome.for_good, for_good) << ReasonName(reason);
  }
}

class ManyServersTest : public LeaseSenderTest {
 protected:
  ManyServersTest() : LeaseSenderTest(7) {}
};

TEST_F(ManyServersTest, AGrantHasItsTimeForAllServersTogether) {
  AllBut(servers_.size(), LeaseAnswer::kNoLeases);
  for (const auto& server : servers_) {
    server->Behave({.kind = Behaviour::Kind::kServe, .delay = Milliseconds(1'200)});
  }
  EXPECT_EQ(Ask(Grant()).kind, Got::kNoAnswer);
  EXPECT_LT(AllRequests().size(), servers_.size());
}

TEST_F(LeaseSenderTest, RefusesTermsOfAnotherLayout) {
  for (const auto& server : servers_) server->Behave(Behaviour::Kind::kOtherLayout);
  const LeaseOutcome outcome = Ask(Grant());
  EXPECT_EQ(outcome.kind, Got::kUnusable);
  EXPECT_EQ(outcome.status, Invalid("a lease of another layout than the cluster's, twitter"));
  EXPECT_EQ(outcome.terms.lease, "lease of " + kLeaseToken);
  EXPECT_EQ(outcome.terms.server, servers_[Asked()]->address());
  EXPECT_GT(outcome.terms.from, Tick(0));
  EXPECT_EQ(outcome.end, Layout::Firn().StartOf(outcome.terms.from + 60'000));
}

TEST_F(LeaseSenderTest, EndsRequestsInProgressWhenDestroyed) {
  for (const auto& server : servers_) server->Behave(Behaviour::Kind::kSilent);
  for (uint64_t number = 1; number <= 20; ++number) {
    sender().Send(number, number % 2 == 0 ? Grant() : Renewal(servers_[0]->address()), outcomes_);
  }
  sender_.reset();
  for (uint64_t number = 1; number <= 20; ++number) {
    EXPECT_EQ(outcomes_->Await(number).kind, Got::kNoAnswer);
  }
}

TEST_F(LeaseSenderTest, ARepetitionOfARequestUnderWayChangesNothing) {
  for (const auto& server : servers_) {
    server->Behave({.kind = Behaviour::Kind::kServe, .delay = Milliseconds(200)});
  }
  for (int i = 0; i < 5; ++i) sender().Send(1, Grant(), outcomes_);
  EXPECT_EQ(outcomes_->Await(1).kind, Got::kTerms);
  EXPECT_EQ(AllRequests().size(), 1u);
}

}  // namespace
}  // namespace firn
