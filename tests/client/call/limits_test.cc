// Tests limits of a call: its deadline includes every wait, and a call that the client refuses
// sends no request.

#include <future>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "client/local_ranges.h"
#include "tests/client/client_rig.h"

namespace firn {
namespace {

// A supply whose prefetched ids never arrive. A call waits for them until its deadline.
class LateSupply final : public LocalSupply {
 public:
  explicit LateSupply(Milliseconds deadline) : deadline_(deadline) {}
  std::optional<int64_t> TryTake(std::string_view) override { return std::nullopt; }
  std::optional<int64_t> AwaitAndTake(std::string_view, Milliseconds) override {
    const BootMs began = TestNow();
    EXPECT_TRUE(Eventually(10 * deadline_, [&] { return TestNow() - began > deadline_; }));
    return std::nullopt;
  }
  Counts counts() const override { return {}; }

 private:
  const Milliseconds deadline_;
};

constexpr Milliseconds kDeadline{300};

TEST(LimitsTest, TheDeadlineIncludesWaitingForPrefetchedIds) {
  ClientRig rig(1);
  rig.options.local_ranges = [](RangeFetcher&) { return std::make_unique<LateSupply>(kDeadline); };
  const Result<int64_t> id = rig.GetId({.deadline = kDeadline});
  EXPECT_EQ(id.status(), Unavailable("the deadline has passed"));
  EXPECT_EQ(rig.server(0).requests(), 0);
}

TEST(MakeTest, FailsIfTheOptionsAreInvalid) {
  const auto twice = LocalRanges({LocalTag::Segment("order"), LocalTag::Snowflake("order")});
  for (const ClientOptions& options :
       {ClientOptions{.servers = "list://127.0.0.1:1", .attempts_max = 0},
        ClientOptions{.servers = "list://127.0.0.1:1", .local_ranges = twice}}) {
    const auto client = Client::Make(options);
    EXPECT_EQ(client.code(), Code::kInvalid);
    Client anyway(options);
    EXPECT_EQ(anyway.status(), client.status());
    EXPECT_EQ(anyway.GetId("order").status(), client.status());
  }
}

TEST(MakeTest, ReturnsAUsableClient) {
  FakeServer server;
  const auto client = Client::Make({.servers = ListOf({&server})});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE((*client)->GetId("order", {.deadline = Milliseconds(20'000)}).ok());
}

class RefusedAtOnceTest : public testing::TestWithParam<CallForm> {};

TEST_P(RefusedAtOnceTest, DoesNotSendAnInvalidTag) {
  ClientRig rig(1, GetParam());
  ASSERT_TRUE(rig.GetId().ok());
  rig.report.attempts.resize(1);
  const std::string tag(70'000, 'x');
  const CallOptions call{.report = &rig.report};
  const Result<int64_t> id = GetParam() == CallForm::kBlocking
                                 ? rig.client().GetId(tag, call)
                                 : rig.client().GetIdLater(tag, call).get();
  EXPECT_EQ(id.code(), Code::kInvalid);
  EXPECT_TRUE(rig.report.attempts.empty());
  EXPECT_EQ(rig.client().Explain(7, tag).code(), Code::kInvalid);
  EXPECT_EQ(rig.client().counters().invalid, 2u);
  EXPECT_EQ(rig.server(0).requests(), 1);
  EXPECT_TRUE(rig.GetId().ok());
  EXPECT_EQ(rig.server(0).connections(), 1);
}

TEST_P(RefusedAtOnceTest, TheReportOfACallWithBadOptionsIsEmpty) {
  ClientRig rig(1, GetParam());
  rig.options.attempts_max = 0;
  CallReport report{.attempts = {{.server = "of another call"}}, .from_memory = true};
  const CallOptions call{.report = &report};
  const Result<int64_t> id = GetParam() == CallForm::kBlocking
                                 ? rig.client().GetId("order", call)
                                 : rig.client().GetIdLater("order", call).get();
  EXPECT_EQ(id.code(), Code::kInvalid);
  EXPECT_TRUE(report.attempts.empty());
  EXPECT_FALSE(report.from_memory);
}

INSTANTIATE_TEST_SUITE_P(BothForms, RefusedAtOnceTest,
                         testing::Values(CallForm::kBlocking, CallForm::kAsync), FormName);

}  // namespace
}  // namespace firn
