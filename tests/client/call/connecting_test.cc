// Tests servers that misbehave before the first request for ids: while the client connects, or in
// the answer to the status request. Runs for every form of a call.

#include <gtest/gtest.h>

#include "tests/client/call/black_hole.h"
#include "tests/client/client_rig.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;

constexpr int kCallsMax = 50;

// Two servers, of which the first misbehaves.
class PairRig : public ClientRig {
 public:
  explicit PairRig(CallForm form) : ClientRig(2, form) {
    options.servers_max = 0;
    options.attempt_limit = kShortAttempt;
  }

  // Makes calls until one was answered that had tried the bad server first. Returns the failed
  // attempt.
  CallAttempt AskBad(const std::string& bad) {
    for (int i = 0; i < kCallsMax; ++i) {
      const bool ok = GetId().ok();
      if (ok && report.attempts.size() == 2 && report.attempts[0].server == bad) {
        return report.attempts[0];
      }
    }
    ADD_FAILURE() << "the bad server was never asked first";
    return {};
  }

  SeenServer ViewOf(const std::string& address) {
    for (const SeenServer& view : client().cluster().servers) {
      if (view.known.address == address) return view;
    }
    return {};
  }
};

class ConnectingTest : public testing::TestWithParam<CallForm> {
 protected:
  ConnectingTest() {
    rig_.options.servers = "list://" + hole_.address() + "," + rig_.server(1).address();
  }

  BlackHole hole_;
  PairRig rig_{GetParam()};
};

TEST_P(ConnectingTest, FailsOverWhenAConnectionIsNotAccepted) {
  const CallAttempt attempt = rig_.AskBad(hole_.address());
  EXPECT_EQ(attempt.end, AttemptEnd::kConnectTimeout) << attempt.ToString();
  EXPECT_GE(attempt.took, kShortAttempt - Milliseconds(1));
}

TEST_P(ConnectingTest, AnUnacceptedConnectionCountsTwice) {
  const auto ejected = [&] {
    return rig_.ViewOf(hole_.address()).health == ServerHealth::kEjected;
  };
  // After the first failure the server is in backoff while the other one answers many calls.
  EXPECT_TRUE(Eventually(Milliseconds(60'000), [&] {
    static_cast<void>(rig_.GetId());
    return ejected();
  }));
  EXPECT_EQ(rig_.ViewOf(hole_.address()).failed, 2u)
      << "three failures in a row eject it, and so do two of these";
}

// Repeats calls that fail at once, like a program in a loop.
void ExpectFewConnections(ClientRig& rig, const std::function<uint64_t()>& begun) {
  const BootMs before = TestNow();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(rig.GetId({.deadline = Milliseconds(25)}).ok());
  const auto elapsed = static_cast<uint64_t>((TestNow() - before).count());
  EXPECT_LE(begun(), 4 + elapsed / 5) << "after 10 ms, spread, and ever later";
  EXPECT_GT(rig.client().counters().connects_deferred, 0u);
}

TEST_P(ConnectingTest, LimitsConnectsToAServerThatRefuses) {
  ClientRig rig(1, GetParam());
  rig.server(0).Down();
  ExpectFewConnections(rig, [&rig] { return rig.client().counters().connects_failed; });
  rig.server(0).Up();
  EXPECT_TRUE(Eventually(Milliseconds(60'000), [&] { return rig.GetId().ok(); }));
}

// A load balancer without a backend behaves like this.
TEST_P(ConnectingTest, LimitsConnectsToAServerThatClosesAtTheFirstRequest) {
  ClientRig rig(1, GetParam());
  rig.server(0).Behave({.kind = Kind::kClose, .in_status = true});
  ExpectFewConnections(rig, [&rig] { return static_cast<uint64_t>(rig.server(0).connections()); });
  rig.server(0).Behave(Kind::kServe);
  EXPECT_TRUE(Eventually(Milliseconds(60'000), [&] { return rig.GetId().ok(); }));
}

// A server's answer to the status request, and the resulting end of the attempt.
struct Introduction {
  const char* name;
  Behaviour::Kind kind;
  AttemptEnd end;
  bool quarantined;
};

constexpr Introduction kIntroductions[] = {
    {"Silent", Kind::kSilent, AttemptEnd::kTimeout, false},
    {"Dripping", Kind::kDrip, AttemptEnd::kTimeout, false},
    {"Half", Kind::kHalf, AttemptEnd::kClosed, false},
    {"Closed", Kind::kClose, AttemptEnd::kClosed, false},
    {"Reset", Kind::kReset, AttemptEnd::kClosed, false},
    {"Garbage", Kind::kGarbage, AttemptEnd::kWrongService, true},
    {"AnotherCalls", Kind::kOtherSequence, AttemptEnd::kWrongService, true},
    {"Empty", Kind::kEmpty, AttemptEnd::kWrongService, true},
    {"AnotherService", Kind::kNoMethod, AttemptEnd::kWrongService, true},
    {"Http", Kind::kHttp, AttemptEnd::kWrongService, true},
    {"Refused", Kind::kRefuse, AttemptEnd::kWrongService, true}};

class IntroductionTest : public testing::TestWithParam<std::tuple<CallForm, Introduction>> {};

TEST_P(IntroductionTest, FailsOverWhenTheStatusIsUnusable) {
  const auto& [form, introduction] = GetParam();
  PairRig pair(form);
  FakeServer& bad = pair.server(0);
  bad.Behave({.kind = introduction.kind,
              .delay = Milliseconds(introduction.kind == Kind::kDrip ? 100 : 0),
              .reason = Reason::kNotReady,
              .in_status = true});
  const CallAttempt attempt = pair.AskBad(bad.address());
  EXPECT_EQ(attempt.end, introduction.end) << attempt.ToString();
  EXPECT_EQ(bad.requests(), 0) << "no ids are requested before the status is known";
  EXPECT_EQ(pair.View(bad).health == ServerHealth::kQuarantined, introduction.quarantined);
}

INSTANTIATE_TEST_SUITE_P(AllForms, IntroductionTest,
                         testing::Combine(testing::Values(CallForm::kBlocking, CallForm::kAsync),
                                          testing::ValuesIn(kIntroductions)),
                         [](const auto& of) {
                           return NameOf(std::get<0>(of.param)) + std::get<1>(of.param).name;
                         });
INSTANTIATE_TEST_SUITE_P(AllForms, ConnectingTest,
                         testing::Values(CallForm::kBlocking, CallForm::kAsync), FormName);

}  // namespace
}  // namespace firn
