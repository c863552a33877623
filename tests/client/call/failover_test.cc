// Tests failover cases that tests/conformance does not cover, in both forms of a call.

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/client/client_rig.h"

namespace firn {
namespace {

using Kind = Behaviour::Kind;

class FailoverTest : public testing::TestWithParam<CallForm> {
 protected:
  // Returns a rig of three servers whose client uses one of them.
  std::unique_ptr<ClientRig> Settled() {
    auto rig = std::make_unique<ClientRig>(3, GetParam());
    EXPECT_TRUE(rig->GetId().ok());
    return rig;
  }
};

TEST_P(FailoverTest, RetriesTheSameServerWhenAnIdleConnectionWasClosed) {
  auto rig = Settled();
  FakeServer& favourite = rig->favourite();
  const int64_t before = favourite.requests();
  favourite.CloseConnections();
  const Result<int64_t> id = rig->GetId();
  ASSERT_TRUE(id.ok()) << id.status();
  EXPECT_EQ(favourite.requests(), before + 1);
  EXPECT_EQ(rig->View(favourite).health, ServerHealth::kHealthy);
  EXPECT_EQ(rig->client().counters().retries, 0u);
}

TEST_P(FailoverTest, QuarantinesAServerThatSendsAnUnrequestedAnswer) {
  auto rig = Settled();
  rig->favourite().Behave(Kind::kRepeat);
  EXPECT_TRUE(rig->GetId().ok()) << "the first answer is as good as any";
  const auto out = [&] { return rig->SawEvent(ClientEvent::Kind::kQuarantined); };
  EXPECT_TRUE(Eventually(Milliseconds(60'000), out));
}

TEST_P(FailoverTest, QuarantinesAServerThatReturnsTooFewIdsInRuns) {
  auto rig = Settled();
  FakeServer& favourite = rig->favourite();
  favourite.Behave(Kind::kWrongCount);
  ASSERT_EQ(rig->GetRuns(10).code(), Code::kOk);
  ASSERT_EQ(rig->report.attempts.size(), 2u);
  EXPECT_EQ(rig->report.attempts[0].end, AttemptEnd::kBroken);
  EXPECT_EQ(rig->View(favourite).health, ServerHealth::kQuarantined);
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
    EXPECT_EQ(rig.View(*server).health, ServerHealth::kHealthy);
  }
}

TEST_P(FailoverTest, ReturnsTheRequestedNumberOfIdsInEveryForm) {
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

INSTANTIATE_TEST_SUITE_P(AllForms, FailoverTest,
                         testing::Values(CallForm::kBlocking, CallForm::kAsync), FormName);

}  // namespace
}  // namespace firn
