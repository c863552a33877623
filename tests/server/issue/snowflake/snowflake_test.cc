#include "server/issue/snowflake/snowflake.h"

#include <functional>
#include <optional>
#include <set>

#include <gtest/gtest.h>

#include "tests/server/issue/snowflake/snowflake_rig.h"

namespace firn {
namespace {

constexpr int64_t kPerTick = 4096;

TEST(Snowflake, RefusesWithoutAClaim) {
  SnowflakeRig rig;
  int64_t id = 0;
  EXPECT_FALSE(rig.snowflake().TryOne(Method::kEmbedded, &id));
  EXPECT_EQ(rig.Ask(1), Verdict::kRefused);
  EXPECT_EQ(rig.refusal().reason, Reason::kNotReady);
  EXPECT_TRUE(rig.refusal().another_server_may_help);
  EXPECT_EQ(rig.snowflake().Last(), std::nullopt);
  EXPECT_EQ(rig.snowflake().CloseClaim(), std::nullopt);
}

// WhyNot must report the refusal that a call would get.
void ExpectWhyNotIsTheRefusal(SnowflakeRig& rig, Reason reason) {
  const std::optional<Refusal> why = rig.snowflake().WhyNot();
  ASSERT_TRUE(why.has_value());
  EXPECT_EQ(why->reason, reason) << why->message;
  ASSERT_EQ(rig.Ask(1), Verdict::kRefused);
  EXPECT_EQ(why->message, rig.refusal().message);
}

TEST(Snowflake, ReportsInAdvanceWhyItWouldRefuse) {
  SnowflakeRig rig(Layout::Firn(), {.policy = ClockPolicy::kStrict});
  ExpectWhyNotIsTheRefusal(rig, Reason::kNotReady);
  rig.Hold();
  EXPECT_FALSE(rig.snowflake().WhyNot().has_value());
  rig.One();
  EXPECT_FALSE(rig.snowflake().WhyNot().has_value());
  rig.clock().StepWall(Milliseconds(-5'000));
  ExpectWhyNotIsTheRefusal(rig, Reason::kClock);
  rig.clock().StepWall(Milliseconds(5'000));
  EXPECT_FALSE(rig.snowflake().WhyNot().has_value());
  rig.clock().Advance(Milliseconds(600'000));
  ExpectWhyNotIsTheRefusal(rig, Reason::kNotReady);
}

TEST(Snowflake, ReportsInAdvanceThatTheLayoutHasRunOut) {
  SnowflakeRig rig;
  rig.clock().Advance(Layout::Firn().end() - rig.clock().Wall());
  rig.Hold();
  ExpectWhyNotIsTheRefusal(rig, Reason::kExhausted);
}

TEST(Snowflake, PutsTimeAndMachineIntoTheId) {
  SnowflakeRig rig;
  rig.Hold(1023);
  const IdFields fields = rig.One();
  EXPECT_EQ(fields.machine, MachineId(1023));
  EXPECT_EQ(fields.tick, rig.now());
}

TEST(Snowflake, ExplainsTheMethodIfTheLayoutHasOne) {
  SnowflakeRig rig(Layout::VestaMinGranularity());
  rig.Hold();
  const std::pair<Method, uint64_t> kFields[] = {{Method::kEmbedded, 0},
                                                 {Method::kThrift, 1},
                                                 {Method::kHttp, 2},
                                                 {Method::kRedis, 1},
                                                 {Method::kDubbo, 1}};
  for (const auto& [method, field] : kFields) {
    int64_t id = 0;
    ASSERT_TRUE(rig.snowflake().TryOne(method, &id));
    EXPECT_EQ(Layout::VestaMinGranularity().Unpack(id)->method, field);
  }
}

// --- batches ------------------------------------------------------------------------------------

TEST(Snowflake, IssuesABatchAsExactRunsAcrossTicks) {
  SnowflakeRig rig;
  rig.Hold();
  ASSERT_EQ(rig.AskPatiently(3 * kPerTick + 5), Verdict::kIssued);
  EXPECT_EQ(rig.runs().count(), 3 * kPerTick + 5);
  EXPECT_EQ(rig.runs().size(), 4u);
  int64_t before = -1;
  rig.runs().ForEach([&](int64_t id) {
    ASSERT_GT(id, before);
    before = id;
  });
}

TEST(Snowflake, KeepsTheIdsOfAWaitingBatch) {
  SnowflakeRig rig;
  rig.Hold();
  ASSERT_EQ(rig.Ask(kPerTick + 1), Verdict::kWait);
  EXPECT_EQ(rig.AskAgain(), Verdict::kWait) << "the clock has not moved";
  EXPECT_EQ(rig.call().place->missing, 1);
  EXPECT_EQ(rig.call().place->runs.count(), kPerTick);
  rig.clock().Advance(Milliseconds(1));
  EXPECT_EQ(rig.AskAgain(), Verdict::kIssued);
  EXPECT_EQ(rig.runs().count(), kPerTick + 1);
}

TEST(Snowflake, UsesTheLayoutsStrideForRuns) {
  SnowflakeRig rig(Layout::VestaMaxPeak());
  rig.Hold(3);
  ASSERT_EQ(rig.Ask(1'000), Verdict::kIssued);
  ASSERT_EQ(rig.runs().size(), 1u);
  EXPECT_EQ(rig.runs()[0].stride, 1024);
  const IdFields last = Layout::VestaMaxPeak().Unpack(rig.runs()[0].last()).value();
  EXPECT_EQ(last.machine, MachineId(3));
  EXPECT_EQ(last.sequence, 999u);
}

TEST(Snowflake, PermitsABatchOfAHundredMillisecondsOfTicks) {
  EXPECT_EQ(SnowflakeRig().snowflake().count_max(), 100 * kPerTick);
  EXPECT_EQ(SnowflakeRig(Layout::VestaMaxPeak()).snowflake().count_max(), 1 << 20);
  const Layout widest = *Layout::Parse("time:5 machine:1 sequence:57");
  EXPECT_EQ(SnowflakeRig(widest).snowflake().count_max(), 63 * (int64_t{1} << 57));
}

TEST(Snowflake, ABatchContinuesUnderANewClaimAndStillRises) {
  SnowflakeRig rig;
  rig.Hold(9);
  ASSERT_EQ(rig.Ask(kPerTick + 1), Verdict::kWait);
  rig.Hold(2);
  ASSERT_EQ(rig.AskAgain(), Verdict::kWait) << "ids of machine 2 are lower in this tick";
  rig.clock().Advance(Milliseconds(1));
  ASSERT_EQ(rig.AskAgain(), Verdict::kIssued);
  ASSERT_EQ(rig.runs().size(), 2u);
  EXPECT_EQ(Layout::Firn().Unpack(rig.runs()[1].first)->machine, MachineId(2));
  EXPECT_GT(rig.runs()[1].first, rig.runs()[0].last());
  EXPECT_EQ(rig.runs().count(), kPerTick + 1);
}

// --- refusals leave no state --------------------------------------------------------------------

// The id after a refusal is the one that would have been issued without it.
class RefusedCall : public testing::Test {
 protected:
  RefusedCall() {
    claim_ = rig_.Hold(7, Milliseconds(50));
    before_ = rig_.One();
  }
  void ExpectRefused(int64_t count, Reason reason) {
    EXPECT_EQ(rig_.Ask(count), Verdict::kRefused);
    EXPECT_EQ(rig_.refusal().reason, reason);
    EXPECT_TRUE(rig_.runs().empty());
  }
  void ExpectNoTrace() {
    const IdFields after = rig_.One();
    EXPECT_EQ(after.tick, before_.tick);
    EXPECT_EQ(after.sequence, before_.sequence + 1);
  }

  SnowflakeRig rig_{Layout::Firn(), {.policy = ClockPolicy::kStrict}};
  std::shared_ptr<Claim> claim_;
  IdFields before_;
};

TEST_F(RefusedCall, ForMoreThanTheClaimHoldsLeavesNoState) {
  ExpectRefused(60 * kPerTick, Reason::kNotReady);
  ExpectNoTrace();
}

TEST_F(RefusedCall, BecauseOfTheClockLeavesNoState) {
  rig_.clock().StepWall(-Milliseconds(500));
  ExpectRefused(1, Reason::kClock);
  int64_t id = 0;
  EXPECT_FALSE(rig_.snowflake().TryOne(Method::kEmbedded, &id));
  rig_.clock().StepWall(Milliseconds(500));
  ExpectNoTrace();
}

TEST_F(RefusedCall, BeyondTheClaimsEndLeavesNoState) {
  rig_.clock().Advance(Milliseconds(50));
  ExpectRefused(1, Reason::kNotReady);
  EXPECT_EQ(rig_.snowflake().Last(), before_.tick);
  claim_->ExtendTo(rig_.clock().Wall() + Milliseconds(50));
  EXPECT_EQ(rig_.One().tick, rig_.now());
}

TEST_F(RefusedCall, WaitsForAGrantThatIsLate) {
  static constexpr GrantEnd kLate{.why = "late"}, kOver{.why = "over", .passes = false};
  claim_->Explain(kLate);
  for (const int64_t count : {int64_t{1}, 60 * kPerTick}) {
    rig_.clock().Advance(Milliseconds(50));
    EXPECT_EQ(rig_.Ask(count), Verdict::kWait);
    EXPECT_EQ(rig_.refusal().reason, Reason::kNotReady) << "the answer if it waits too long";
    EXPECT_TRUE(rig_.runs().empty());
    claim_->ExtendTo(rig_.clock().Wall() + Milliseconds(70));
    EXPECT_EQ(rig_.AskPatiently(count), Verdict::kIssued);
    rig_.clock().Advance(Milliseconds(70));
  }
  claim_->Explain(kOver);
  ExpectRefused(1, Reason::kNotReady);
}

TEST_F(RefusedCall, AfterTheClaimWasClosedLeavesNoState) {
  EXPECT_EQ(rig_.snowflake().CloseClaim(), before_.tick);
  ExpectRefused(1, Reason::kNotReady);
  EXPECT_EQ(rig_.snowflake().Last(), before_.tick);
}

TEST(Snowflake, IsExhaustedWhenTheLayoutHasRunOut) {
  SnowflakeRig rig;
  auto claim = rig.Hold(7, std::chrono::hours(24 * 365 * 200));
  rig.One();
  rig.clock().Advance(Layout::Firn().end() - rig.clock().Wall() - Milliseconds(1));
  EXPECT_EQ(rig.One().tick, Layout::Firn().last_tick());
  rig.clock().Advance(Milliseconds(1));
  EXPECT_EQ(rig.Ask(1), Verdict::kRefused);
  EXPECT_EQ(rig.refusal().reason, Reason::kExhausted);
  EXPECT_TRUE(rig.refusal().another_server_may_help) << "a wrong clock of one server can cause it";
  EXPECT_EQ(rig.snowflake().Last(), Layout::Firn().last_tick());
}

// --- claims -------------------------------------------------------------------------------------

// Returns the id of a machine at a tick, or nullopt.
using IdOfMachine = std::function<std::optional<int64_t>(uint32_t machine, Tick tick)>;

// Whether any two of many machines, each at several ticks, have the same id.
bool MachinesMeet(Tick first, const IdOfMachine& id_of) {
  std::set<int64_t> seen;
  for (int64_t tick = 0; tick < 4; ++tick) {
    for (uint32_t machine = 0; machine < 200; ++machine) {
      const std::optional<int64_t> id = id_of(machine, first + tick);
      if (id && !seen.insert(*id).second) return true;
    }
  }
  return false;
}

// A worker number wider than its field, ORed silently, would give two machines the same ids.
TEST(Snowflake, RefusesAMachineIdWiderThanItsField) {
  SnowflakeRig rig(Layout::JsSafe());
  const Tick first = rig.now();
  int refused = 0;
  const auto product = [&](uint32_t machine, Tick tick) -> std::optional<int64_t> {
    rig.clock().Advance(Layout::JsSafe().StartOf(tick) - rig.clock().Wall());
    auto claim = std::make_shared<Claim>(Layout::JsSafe(), MachineId(machine), rig.clock().Wall());
    claim->ExtendTo(rig.clock().Wall() + Milliseconds(10));
    const Status adopted = rig.snowflake().Adopt(claim);
    refused += adopted.code() == Code::kInvalid ? 1 : 0;
    int64_t id = 0;
    if (!adopted.ok() || !rig.snowflake().TryOne(Method::kEmbedded, &id)) return std::nullopt;
    return id;
  };
  EXPECT_FALSE(MachinesMeet(first, product));
  EXPECT_EQ(refused, 4 * (200 - 64));

  const auto mutant = [](uint32_t machine, Tick tick) -> std::optional<int64_t> {
    return tick.count() << Layout::JsSafe().time().shift | int64_t{machine}
                                                               << Layout::JsSafe().machine().shift;
  };
  EXPECT_TRUE(MachinesMeet(first, mutant));
}

TEST(Snowflake, ARefusedClaimKeepsThePreviousOne) {
  SnowflakeRig rig(Layout::JsSafe());
  rig.Hold(63);
  const IdFields before = rig.One();
  const auto wide = std::make_shared<Claim>(Layout::JsSafe(), MachineId(64), rig.clock().Wall());
  EXPECT_EQ(rig.snowflake().Adopt(wide).code(), Code::kInvalid);
  EXPECT_EQ(rig.One().sequence, before.sequence + 1);
}

TEST(Snowflake, RefusesAClaimOfAnotherLayout) {
  SnowflakeRig rig;
  const auto other = std::make_shared<Claim>(Layout::Twitter(), MachineId(1), rig.clock().Wall());
  EXPECT_EQ(rig.snowflake().Adopt(other).code(), Code::kInvalid);
}

// A layout may permit explaining ids but not issuing them.
TEST(Snowflake, RefusesALayoutThatCannotBeIssued) {
  const Layout layout = *Layout::Parse("method:1 time:41 machine:10 sequence:10");
  SnowflakeRig rig(layout);
  EXPECT_EQ(rig.snowflake().Start().code(), Code::kInvalid);
  const auto claim = std::make_shared<Claim>(layout, MachineId(1), rig.clock().Wall());
  EXPECT_EQ(rig.snowflake().Adopt(claim).code(), Code::kInvalid);
  EXPECT_EQ(rig.Ask(1), Verdict::kRefused);
  EXPECT_EQ(SnowflakeRig(Layout::VestaMaxPeak()).snowflake().Start(), Status());
}

TEST(Snowflake, BeginsAtABaseAheadOfTheWallClockWithoutWaiting) {
  SnowflakeRig rig;
  const WallMs base = rig.clock().Wall() + Milliseconds(90'000);
  const auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(1), base);
  claim->ExtendTo(base + Milliseconds(1'000));
  ASSERT_EQ(rig.snowflake().Adopt(claim), Status());
  EXPECT_EQ(rig.One().tick, claim->first_tick());
  EXPECT_EQ(rig.id_clock().Last(), base);
}

TEST(Snowflake, ContinuesWhenTheWallClockIsSetBack) {
  SnowflakeRig rig;
  rig.Hold();
  const Tick before = rig.One().tick;
  rig.clock().StepWall(-Milliseconds(3'600'000));
  EXPECT_EQ(rig.One().tick, before);
  rig.clock().Advance(Milliseconds(20));
  EXPECT_EQ(rig.One().tick, before + 20);
}

TEST(Snowflake, ClosesTheOldSequencerWhenItAdoptsAnotherClaim) {
  SnowflakeRig rig;
  rig.Hold(1);
  rig.One();
  rig.Hold(2);
  EXPECT_EQ(rig.One().machine, MachineId(2));
  EXPECT_EQ(rig.snowflake().CloseClaim(), rig.now());
  // A keeper that asks again must not consider the claim unused.
  EXPECT_EQ(rig.snowflake().CloseClaim(), rig.now());
  EXPECT_EQ(rig.snowflake().Last(), rig.now());
  rig.snowflake().Close();
  EXPECT_EQ(rig.snowflake().CloseClaim(), rig.now());
}

TEST(Snowflake, IsNotReopenedOnceClosed) {
  SnowflakeRig rig;
  rig.Hold();
  rig.snowflake().Close();
  rig.snowflake().Close();
  EXPECT_EQ(rig.Ask(1), Verdict::kRefused);
  const auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(1), rig.clock().Wall());
  EXPECT_EQ(rig.snowflake().Adopt(claim).code(), Code::kUnavailable);
}

// --- layouts of seconds -------------------------------------------------------------------------

TEST(Snowflake, UsesASecondOnlyIfAllOfItIsGranted) {
  SnowflakeRig rig(Layout::VestaMaxPeak());
  const Layout& layout = Layout::VestaMaxPeak();
  const WallMs base = layout.StartOf(rig.now()) + Milliseconds(1);
  auto claim = std::make_shared<Claim>(layout, MachineId(1), base);
  claim->ExtendTo(base + Milliseconds(2'500));
  ASSERT_EQ(rig.snowflake().Adopt(claim), Status());
  const Tick first = layout.TickAt(base) + 1;
  EXPECT_EQ(rig.One().tick, first) << "the first whole second at or after the base";
  rig.clock().Advance(Milliseconds(2'000));
  EXPECT_EQ(rig.Ask(1), Verdict::kRefused) << "the bound is within this second";
  EXPECT_EQ(rig.snowflake().Last(), first);
}

}  // namespace
}  // namespace firn
