// Tests that the outcome of a call does not affect other calls on the same connection.

#include <future>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/client/client_rig.h"
#include "tests/support/process.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;

// All calls use one connection to one server, unless a test says otherwise.
class NeighboursTest : public testing::TestWithParam<CallForm> {
 protected:
  explicit NeighboursTest(size_t servers = 1) : rig_(servers, GetParam()) {
    rig_.options.connections = 1;
  }

  std::future<Result<int64_t>> Later(CallOptions call = {}) {
    return std::async(std::launch::async, [this, call] {
      return GetParam() == CallForm::kBlocking ? rig_.client().GetId("order", call)
                                               : rig_.client().GetIdLater("order", call).get();
    });
  }

  ClientRig rig_;
};

TEST_P(NeighboursTest, AShortDeadlineFailsNoOtherCall) {
  ASSERT_TRUE(rig_.GetId().ok());
  rig_.server(0).Behave(Behaviour{.delay = Milliseconds(300)});
  auto patient = Later();
  ASSERT_TRUE(Eventually(kPatience, [&] { return rig_.server(0).requests() == 2; }));
  EXPECT_EQ(rig_.GetId({.deadline = Milliseconds(20)}).code(), Code::kUnavailable);
  EXPECT_EQ(rig_.report.attempts.size(), 1u);
  EXPECT_EQ(rig_.report.attempts[0].end, AttemptEnd::kTimeout);
  const Result<int64_t> id = patient.get();
  EXPECT_TRUE(id.ok()) << id.status();
  rig_.server(0).Behave(Kind::kServe);
  const Result<int64_t> next = rig_.GetId();
  ASSERT_TRUE(next.ok()) << next.status();
  EXPECT_EQ(*next & 0xffff, rig_.server(0).given()) << "its own answer, not the one before";
  EXPECT_EQ(rig_.server(0).connections(), 1) << "the connection is spared";
  EXPECT_EQ(rig_.View(rig_.server(0)).failed, 0u) << "and the server not blamed";
  EXPECT_EQ(rig_.client().counters().late_answers, 1u);
}

TEST_P(NeighboursTest, DetectsASilentServerByShortCalls) {
  rig_.options.attempt_limit = Milliseconds(500);
  ASSERT_TRUE(rig_.GetId().ok());
  rig_.server(0).Behave(Kind::kSilent);
  EXPECT_FALSE(rig_.GetId({.deadline = Milliseconds(20)}).ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig_.server(0).open_connections() == 0; }));
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig_.View(rig_.server(0)).failed == 1; }));
}

TEST_P(NeighboursTest, WaitsUntilTheDeadlineWhileTheQueueMoves) {
  rig_.options.attempt_limit = Milliseconds(1'500);
  rig_.options.deadline = Milliseconds(60'000);
  ASSERT_TRUE(rig_.GetId().ok());
  rig_.server(0).Behave(Behaviour{.delay = Milliseconds(200)});
  std::vector<std::future<Result<int64_t>>> line;
  for (int i = 0; i < 20; ++i) line.push_back(Later());
  for (auto& one : line) {
    const Result<int64_t> id = one.get();
    EXPECT_TRUE(id.ok()) << id.status();
  }
  EXPECT_EQ(rig_.server(0).requests(), 21) << "each is asked once";
  EXPECT_GT(rig_.client().counters().queued, 0u);
}

TEST_P(NeighboursTest, CountsARequestThatWasReportedLateOnce) {
  rig_.options.attempt_limit = Milliseconds(4'000);
  rig_.options.attempts_max = 1;
  ASSERT_TRUE(rig_.GetId().ok());
  rig_.server(0).Behave(Behaviour{.delay = Milliseconds(2'000)});
  auto answered = Later();
  ASSERT_TRUE(Eventually(kPatience, [&] { return rig_.server(0).requests() == 2; }));
  rig_.server(0).Behave(Kind::kSilent);
  EXPECT_FALSE(rig_.GetId({.deadline = Milliseconds(400)}).ok());
  auto late = Later({.deadline = Milliseconds(60'000)});
  EXPECT_TRUE(answered.get().ok());
  EXPECT_FALSE(late.get().ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig_.server(0).open_connections() == 0; }));
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig_.View(rig_.server(0)).failed == 2; }));
  EXPECT_EQ(rig_.client().counters().queued, 1u);
  EXPECT_FALSE(rig_.SawEvent(ClientEvent::Kind::kUnhealthy)) << "two failures are not three";
}

TEST_P(NeighboursTest, CountsTheRequestsBehindALateOneAsLost) {
  rig_.options.attempt_limit = Milliseconds(4'000);
  rig_.options.attempts_max = 1;
  ASSERT_TRUE(rig_.GetId().ok());
  rig_.server(0).Behave(Behaviour{.delay = Milliseconds(2'000)});
  auto answered = Later();
  ASSERT_TRUE(Eventually(kPatience, [&] { return rig_.server(0).requests() == 2; }));
  rig_.server(0).Behave(Kind::kSilent);
  auto late = Later({.deadline = Milliseconds(60'000)});
  EXPECT_TRUE(answered.get().ok());
  auto behind = Later({.deadline = Milliseconds(60'000)});
  auto another = Later({.deadline = Milliseconds(60'000)});
  for (auto* one : {&late, &behind, &another}) EXPECT_FALSE(one->get().ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig_.SawEvent(ClientEvent::Kind::kUnhealthy); }))
      << "three failures";
}

TEST_P(NeighboursTest, IdsOfAnAbandonedCallAreNotCheckedInTheNextAnswer) {
  rig_.server(0).Behave({.kind = Kind::kFarTime, .delay = Milliseconds(200)});
  std::promise<Code> ended;
  rig_.client().GetIds("undated", 5, [&](const auto& ids) { ended.set_value(ids.code()); },
                       {.deadline = Milliseconds(50)});
  EXPECT_EQ(ended.get_future().get(), Code::kUnavailable);
  ASSERT_TRUE(Eventually(kPatience, [&] { return rig_.server(0).requests() == 1; }));
  rig_.server(0).Behave(Kind::kServe);
  std::promise<Status> text;
  rig_.client().GetText("order", [&](const auto& got) { text.set_value(got.status()); });
  EXPECT_EQ(text.get_future().get(), Status());
  EXPECT_EQ(rig_.View(rig_.server(0)).health, ServerHealth::kHealthy);
}

class TwoServersTest : public NeighboursTest {
 protected:
  TwoServersTest() : NeighboursTest(2) {}
};

// A call fails over if its connection's queue moves too slowly to meet its deadline.
TEST_P(TwoServersTest, FailsOverWhenTheQueueMovesTooSlowly) {
  rig_.options.attempt_limit = Milliseconds(400);
  ASSERT_TRUE(rig_.GetId().ok());
  FakeServer& slow = rig_.favourite();
  slow.Behave(Behaviour{.delay = Milliseconds(250)});
  std::vector<std::future<Result<int64_t>>> line;
  for (int i = 0; i < 4; ++i) line.push_back(Later());
  for (auto& one : line) EXPECT_TRUE(one.get().ok());
  const int64_t elsewhere = rig_.Requests() - slow.requests();
  EXPECT_GT(elsewhere, 0);
  EXPECT_EQ(slow.connections(), 1) << "those before it are not torn away";
}

INSTANTIATE_TEST_SUITE_P(BothForms, NeighboursTest,
                         testing::Values(CallForm::kBlocking, CallForm::kAsync), FormName);
INSTANTIATE_TEST_SUITE_P(BothForms, TwoServersTest,
                         testing::Values(CallForm::kBlocking, CallForm::kAsync), FormName);

}  // namespace
}  // namespace firn
