// Each row of what a client does when something happens, by scripted servers, in every form.

#include <functional>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/client/client_rig.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;

// Long enough for a healthy server on a busy machine.
constexpr Milliseconds kFairAttempt{1'000};

class FailoverTest : public testing::TestWithParam<CallForm> {
 protected:
  // A rig of three servers whose client has settled on one of them.
  std::unique_ptr<ClientRig> Settled(ClientOptions change = {}) {
    auto rig = std::make_unique<ClientRig>(3, GetParam());
    if (change.attempt_limit != ClientOptions().attempt_limit) {
      rig->options.attempt_limit = change.attempt_limit;
    }
    rig->options.on_failure = change.on_failure;
    EXPECT_TRUE(rig->GetId().ok());
    return rig;
  }

  // The call is answered by another server after the favourite ended in `end`.
  void ExpectGoesOn(ClientRig& rig, AttemptEnd end) {
    const std::string first = rig.favourite().address();
    const Result<int64_t> id = rig.GetId();
    ASSERT_TRUE(id.ok()) << id.status();
    ASSERT_EQ(rig.report.attempts.size(), 2u);
    EXPECT_EQ(rig.report.attempts[0].server, first);
    EXPECT_EQ(rig.report.attempts[0].end, end) << rig.report.attempts[0].ToString();
    EXPECT_NE(rig.report.attempts[1].server, first);
    EXPECT_EQ(rig.report.attempts[1].end, AttemptEnd::kAnswered);
  }

  static Behaviour Refusing(Reason reason, Milliseconds retry_after = Milliseconds(0)) {
    return {.kind = Kind::kRefuse, .reason = reason, .retry_after = retry_after};
  }
};

TEST_P(FailoverTest, GivesDifferentIdsFromAnyServer) {
  ClientRig rig(3, GetParam());
  rig.options.servers_max = 0;
  std::set<int64_t> ids;
  for (int i = 0; i < 30; ++i) {
    const Result<int64_t> id = rig.GetId();
    ASSERT_TRUE(id.ok()) << id.status();
    ids.insert(*id);
  }
  EXPECT_EQ(ids.size(), 30u);
  for (const FakeServer* server : rig.servers()) EXPECT_GT(server->requests(), 0);
}

TEST_P(FailoverTest, FailsOverAtOnceWhenConnectionsAreRefused) {
  ClientRig rig(3, GetParam());
  rig.server(0).Down();
  rig.server(1).Down();
  for (int i = 0; i < 10; ++i) {
    const Result<int64_t> id = rig.GetId();
    ASSERT_TRUE(id.ok()) << id.status();
  }
  EXPECT_EQ(rig.server(2).requests(), 10);
  EXPECT_EQ(rig.client().counters().retries, 0u) << "a refused connection costs no budget";
}

TEST_P(FailoverTest, AsksTheSameServerOnceMoreWhenAnIdleConnectionWasClosed) {
  auto rig = Settled();
  FakeServer& favourite = rig->favourite();
  const int64_t before = favourite.requests();
  favourite.CloseConnections();
  const Result<int64_t> id = rig->GetId();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(favourite.requests(), before + 1);
  EXPECT_EQ(rig->View(favourite).fitness, ServerFitness::kFit);
  EXPECT_EQ(rig->client().counters().retries, 0u);
}

TEST_P(FailoverTest, GoesOnWhenTheServerIsKilled) {
  auto rig = Settled();
  rig->favourite().Down();
  EXPECT_TRUE(rig->GetId().ok());
}

TEST_P(FailoverTest, GoesOnWhenFreshConnectionsAreReset) {
  auto rig = Settled();
  FakeServer& favourite = rig->favourite();
  favourite.Behave(Kind::kReset);
  const Result<int64_t> id = rig->GetId();
  ASSERT_TRUE(id.ok()) << id.status();
  ASSERT_EQ(rig->report.attempts.size(), 3u);
  EXPECT_EQ(rig->report.attempts[0].end, AttemptEnd::kClosed);
  EXPECT_EQ(rig->report.attempts[1].end, AttemptEnd::kClosed);
  EXPECT_EQ(rig->report.attempts[1].server, favourite.address()) << "once more on a fresh one";
  EXPECT_EQ(rig->client().counters().retries, 1u) << "the third is paid for";
}

TEST_P(FailoverTest, GoesOnWhenHalfAnAnswerCame) {
  auto rig = Settled();
  rig->favourite().Behave(Kind::kHalf);
  ExpectGoesOn(*rig, AttemptEnd::kClosed);
}

TEST_P(FailoverTest, GoesOnWhenNoAnswerComes) {
  auto rig = Settled({.attempt_limit = kFairAttempt});
  rig->favourite().Behave(Kind::kSilent);
  ExpectGoesOn(*rig, AttemptEnd::kTimeout);
  EXPECT_GE(rig->report.attempts[0].took, kFairAttempt - Milliseconds(1));
}

TEST_P(FailoverTest, GoesOnWhenTheAnswerDrips) {
  auto rig = Settled({.attempt_limit = kFairAttempt});
  rig->favourite().Behave(Behaviour{.kind = Kind::kDrip, .delay = Milliseconds(100)});
  ExpectGoesOn(*rig, AttemptEnd::kTimeout);
}

TEST_P(FailoverTest, QuarantinesAServerThatBreaksTheProtocol) {
  for (const Kind kind :
       {Kind::kGarbage, Kind::kZeroIds, Kind::kFarTime, Kind::kOtherSequence, Kind::kEmpty}) {
    auto rig = Settled();
    FakeServer& favourite = rig->favourite();
    favourite.Behave(kind);
    ExpectGoesOn(*rig, AttemptEnd::kBroken);
    EXPECT_EQ(rig->View(favourite).fitness, ServerFitness::kQuarantined);
    EXPECT_TRUE(rig->SawEvent(ClientEvent::Kind::kQuarantined));
  }
}

TEST_P(FailoverTest, QuarantinesAServerThatSendsAnUnrequestedAnswer) {
  auto rig = Settled();
  rig->favourite().Behave(Kind::kRepeat);
  EXPECT_TRUE(rig->GetId().ok()) << "the first answer is as good as any";
  const auto out = [&] { return rig->SawEvent(ClientEvent::Kind::kQuarantined); };
  EXPECT_TRUE(Eventually(Milliseconds(60'000), out));
}

TEST_P(FailoverTest, QuarantinesAServerThatReturnsTooFewIds) {
  const auto ids = [](ClientRig& rig) { return rig.GetIds(10).code(); };
  const auto runs = [](ClientRig& rig) { return rig.GetRuns(10).code(); };
  const auto text = [](ClientRig& rig) { return rig.GetText().code(); };
  for (const auto& ask : std::vector<std::function<Code(ClientRig&)>>{ids, runs, text}) {
    auto rig = Settled();
    FakeServer& favourite = rig->favourite();
    favourite.Behave(Kind::kWrongCount);
    ASSERT_EQ(ask(*rig), Code::kOk);
    ASSERT_EQ(rig->report.attempts.size(), 2u);
    EXPECT_EQ(rig->report.attempts[0].end, AttemptEnd::kBroken);
    EXPECT_EQ(rig->View(favourite).fitness, ServerFitness::kQuarantined);
  }
}

TEST_P(FailoverTest, UsesTheOtherMethodsOfAServerThatLacksOne) {
  ClientRig rig(3, GetParam());
  rig.options.servers_max = 0;
  rig.AskEach();
  for (FakeServer* server : rig.servers()) server->Behave(Kind::kNoMethod);
  EXPECT_EQ(rig.GetRuns(10).code(), Code::kUnavailable);
  EXPECT_EQ(rig.report.attempts.size(), 3u);
  for (FakeServer* server : rig.servers()) server->Behave(Kind::kServe);
  const Result<int64_t> id = rig.GetId();
  EXPECT_TRUE(id.ok()) << id.status();
  for (FakeServer* server : rig.servers()) {
    EXPECT_EQ(rig.View(*server).fitness, ServerFitness::kFit);
  }
}

TEST_P(FailoverTest, GivesAsManyIdsAsWereAskedForInEveryShape) {
  ClientRig rig(1, GetParam());
  const auto ids = rig.GetIds(10);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(std::set<int64_t>(ids->begin(), ids->end()).size(), 10u);
  const auto runs = rig.GetRuns(25);
  ASSERT_TRUE(runs.ok()) << runs.status();
  int64_t count = 0;
  for (const IdRun& run : *runs) count += run.count;
  EXPECT_EQ(count, 25);
  const Result<std::string> text = rig.GetText();
  ASSERT_TRUE(text.ok()) << text.status();
  EXPECT_EQ(*text, std::to_string(rig.GetId().value() - 1)) << "the id before the next one";
}

TEST_P(FailoverTest, QuarantinesAServerThatRepeatsAnIdInOneAnswer) {
  auto rig = Settled();
  FakeServer& favourite = rig->favourite();
  favourite.Behave(Kind::kTwice);
  const auto ids = rig->GetIds(10);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(std::set<int64_t>(ids->begin(), ids->end()).size(), 10u);
  EXPECT_EQ(rig->report.attempts[0].end, AttemptEnd::kBroken);
  EXPECT_EQ(rig->View(favourite).fitness, ServerFitness::kQuarantined);
}

TEST_P(FailoverTest, TakesNoIdFromAnotherCluster) {
  ClientRig rig(3, GetParam());
  rig.options.cluster_uuid = FakeServer::kUuid;
  rig.server(0).Behave(Kind::kForeign);
  rig.server(1).Behave(Kind::kHttp);
  for (int i = 0; i < 5; ++i) {
    const Result<int64_t> id = rig.GetId();
    ASSERT_TRUE(id.ok()) << id.status();
  }
  EXPECT_EQ(rig.server(0).requests(), 0);
  EXPECT_EQ(rig.server(2).requests(), 5);
}

TEST_P(FailoverTest, LeavesAServerThatDoesNotKnowItsClusterYetForAWhileOnly) {
  ClientRig rig(2, GetParam());
  rig.options.cluster_uuid = FakeServer::kUuid;
  rig.options.servers_max = 0;
  rig.server(0).Behave(Kind::kUnaware);
  const auto met = [&] { return rig.GetId().ok() && rig.server(0).connections() > 0; };
  ASSERT_TRUE(Eventually(kPatience, met));
  EXPECT_EQ(rig.server(0).requests(), 0);
  EXPECT_FALSE(rig.SawEvent(ClientEvent::Kind::kQuarantined));
  rig.server(0).Behave(Kind::kServe);
  rig.server(1).Down();
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig.GetId().ok() && rig.server(0).given() > 0; }));
}

TEST_P(FailoverTest, GoesOnWhenAServerIsOverloadedWithoutBlamingIt) {
  auto rig = Settled();
  FakeServer& favourite = rig->favourite();
  favourite.Behave(Refusing(Reason::kOverloaded, Milliseconds(5)));
  ExpectGoesOn(*rig, AttemptEnd::kRefused);
  EXPECT_EQ(rig->View(favourite).fitness, ServerFitness::kFit);
}

TEST_P(FailoverTest, WaitsAsLongAsTheyAdviseWhenAllAreOverloaded) {
  for (const size_t servers : {size_t{2}, size_t{3}, size_t{4}}) {
    ClientRig rig(servers, GetParam());
    for (FakeServer* server : rig.servers()) {
      server->Behave(Refusing(Reason::kOverloaded, Milliseconds(50)));
    }
    rig.client();
    std::jthread later([&rig] {
      EXPECT_TRUE(Eventually(kPatience, [&] { return rig.Requests() > 6; }));
      for (FakeServer* server : rig.servers()) server->Behave(Kind::kServe);
    });
    const BootMs before = TestNow();
    const Result<int64_t> id = rig.GetId();
    EXPECT_TRUE(id.ok()) << id.status();
    EXPECT_GT(rig.report.attempts.size(), 6u);
    EXPECT_GE(TestNow() - before, Milliseconds(99)) << "two waits at least";
  }
}

TEST_P(FailoverTest, TellsThatAllAreOverloadedWhenTheDeadlineAllowsNoWait) {
  ClientRig rig(3, GetParam());
  for (FakeServer* server : rig.servers()) {
    server->Behave(Refusing(Reason::kOverloaded, Milliseconds(60'000)));
  }
  const Result<int64_t> id = rig.GetId();
  EXPECT_EQ(id.code(), Code::kUnavailable);
  EXPECT_EQ(rig.report.attempts.size(), 3u) << id.status();
  EXPECT_EQ(rig.report.refusal, Reason::kOverloaded);
  EXPECT_EQ(rig.report.retry_after, Milliseconds(60'000));
}

TEST_P(FailoverTest, AsksServersThatAreNotReadyLast) {
  for (const Reason reason : {Reason::kNotReady, Reason::kClock}) {
    auto rig = Settled();
    FakeServer& favourite = rig->favourite();
    favourite.Behave(Refusing(reason, Milliseconds(30'000)));
    ExpectGoesOn(*rig, AttemptEnd::kRefused);
    EXPECT_EQ(rig->View(favourite).fitness, ServerFitness::kResting);
    const int64_t asked = favourite.requests();
    EXPECT_TRUE(rig->GetId().ok());
    EXPECT_EQ(favourite.requests(), asked);
  }
}

TEST_P(FailoverTest, LeavesAServerWithoutItsStoreForThatTagOnly) {
  auto rig = Settled();
  FakeServer& favourite = rig->favourite();
  favourite.Behave(Refusing(Reason::kStoreDown, Milliseconds(30'000)));
  ExpectGoesOn(*rig, AttemptEnd::kRefused);
  EXPECT_EQ(rig->View(favourite).fitness, ServerFitness::kFit) << "for other tags";
  const int64_t asked = favourite.requests();
  EXPECT_TRUE(rig->GetId().ok());
  EXPECT_EQ(favourite.requests(), asked);
}

TEST_P(FailoverTest, LeavesAServerThatIsOnItsWayOut) {
  auto rig = Settled();
  FakeServer& favourite = rig->favourite();
  favourite.Behave(Refusing(Reason::kDraining));
  ExpectGoesOn(*rig, AttemptEnd::kRefused);
  EXPECT_EQ(rig->View(favourite).fitness, ServerFitness::kDraining);
}

TEST_P(FailoverTest, LeavesAServerThatHasClosedOneTagForThatTagOnly) {
  ClientRig rig(2, GetParam());
  rig.options.servers_max = 0;
  Behaviour closed = Refusing(Reason::kDraining);
  closed.only_tag = "order";
  rig.server(0).Behave(closed);
  rig.AskEach();
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return rig.View(rig.server(0)).fitness == ServerFitness::kFit;
  })) << "its status says that it does not drain";
  Behaviour overloaded = Refusing(Reason::kOverloaded);
  overloaded.only_tag = "invoice";
  rig.server(1).Behave(overloaded);
  EXPECT_TRUE(rig.client().GetId("invoice").ok());
  EXPECT_GT(rig.server(0).given(), 0) << "another tag";
  const int64_t asked = rig.server(0).requests();
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(rig.GetId().ok());
  EXPECT_EQ(rig.server(0).requests(), asked);
}

TEST_P(FailoverTest, ReturnsRefusalsThatEveryServerWouldRepeat) {
  const std::pair<Reason, Code> kFinal[] = {{Reason::kBadRequest, Code::kInvalid},
                                            {Reason::kUnknownTag, Code::kNotFound},
                                            {Reason::kRejected, Code::kDenied},
                                            {Reason::kExhausted, Code::kExhausted}};
  auto rig = Settled();
  for (const auto& [reason, code] : kFinal) {
    for (FakeServer* server : rig->servers()) server->Behave(Refusing(reason, Milliseconds(7)));
    const Result<int64_t> id = rig->GetId();
    EXPECT_EQ(id.status(), Status(code, "as the test says")) << ReasonName(reason);
    EXPECT_EQ(rig->report.attempts.size(), 1u);
    EXPECT_EQ(rig->report.refusal, reason);
    EXPECT_EQ(rig->report.retry_after, Milliseconds(7));
  }
  EXPECT_EQ(rig->View(rig->favourite()).fitness, ServerFitness::kFit);
}

TEST_P(FailoverTest, TellsTheCallerAtOnceInFailfast) {
  auto rig = Settled({.on_failure = FailureMode::kFailfast});
  rig->favourite().Behave(Refusing(Reason::kOverloaded));
  const Result<int64_t> id = rig->GetId();
  EXPECT_EQ(id.code(), Code::kUnavailable);
  EXPECT_EQ(rig->report.attempts.size(), 1u);
}

TEST_P(FailoverTest, ListsEveryAttemptInOneError) {
  ClientRig rig(3, GetParam());
  rig.options.attempt_limit = kFairAttempt;
  rig.server(0).Behave(Kind::kSilent);
  rig.server(1).Behave(Refusing(Reason::kNotReady));
  rig.server(2).Down();
  const Result<int64_t> id = rig.GetId();
  ASSERT_EQ(id.code(), Code::kUnavailable);
  const std::string text = id.status().message();
  for (const FakeServer* server : rig.servers()) {
    EXPECT_NE(text.find(server->address()), std::string::npos) << text;
  }
  for (const char* what : {"did not answer after 1", "refused (NOT_READY) after",
                           "unreachable after", "as the test says"}) {
    EXPECT_NE(text.find(what), std::string::npos) << what << " is not in: " << text;
  }
}

TEST_P(FailoverTest, NeverGivesALateAnswerToTheNextCall) {
  ClientRig rig(1, GetParam());
  rig.options.attempt_limit = kFairAttempt;
  ASSERT_TRUE(rig.GetId().ok());
  rig.server(0).Behave(Behaviour{.delay = 3 * kFairAttempt / 2});
  EXPECT_FALSE(rig.GetId().ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig.server(0).given() == 2; }));
  rig.server(0).Behave(Kind::kServe);
  const int64_t given = rig.server(0).given();
  const Result<int64_t> id = rig.GetId();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(*id & 0xffff, given + 1) << "the id of this call and not of the one before";
}

TEST_P(FailoverTest, AsksOneThatIsBackAfterAllWereDead) {
  ClientRig rig(3, GetParam());
  for (FakeServer* server : rig.servers()) server->Down();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(rig.GetId().ok());
  rig.server(1).Up();
  const Result<int64_t> id = rig.GetId();
  EXPECT_TRUE(id.ok()) << id.status();
}

TEST_P(FailoverTest, EndsAtTheDeadline) {
  ClientRig rig(2, GetParam());
  for (FakeServer* server : rig.servers()) server->Behave(Kind::kSilent);
  const BootMs before = TestNow();
  const Result<int64_t> id = rig.GetId({.deadline = Milliseconds(300)});
  EXPECT_EQ(id.code(), Code::kUnavailable);
  EXPECT_GE(TestNow() - before, Milliseconds(299));
  EXPECT_EQ(rig.report.attempts.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(AllForms, FailoverTest,
                         testing::Values(CallForm::kBlocking, CallForm::kAsync), FormName);

}  // namespace
}  // namespace firn
