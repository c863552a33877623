#include "common/id/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

const IdFields kOwn{Tick(1000), MachineId(7), 3};

TEST(ExplainTest, NamesEveryField) {
  const Layout& twitter = Layout::Twitter();
  const Result<Explanation> e = Explain(1169786042799259000, twitter, *RackSplit::Make(twitter, 5));
  ASSERT_TRUE(e.ok()) << e.status();
  EXPECT_EQ(e->layout, "twitter");
  EXPECT_EQ(e->utc, "2019-09-06T01:35:00.834Z");
  EXPECT_EQ(e->time, WallMs(1567733700834));
  EXPECT_EQ(e->fields.sequence, 3448u);
  EXPECT_EQ(e->worker, 1u);
  EXPECT_EQ(e->rack, 7u);
  EXPECT_FALSE(e->fields.method);
}

TEST(ExplainTest, RefusesAnIdThatIsNotOfTheLayout) {
  EXPECT_EQ(Explain(-1, Layout::Firn(), RackSplit::Default(Layout::Firn())).code(), Code::kInvalid);
}

TEST(RackSplitTest, WorkerOneInRackOneIsFive) {
  const RackSplit split = RackSplit::Default(Layout::Firn());
  EXPECT_EQ(*split.Join(1, 1), MachineId(0b0000000101));
  EXPECT_EQ(split.WorkerOf(MachineId(5)), 1u);
  EXPECT_EQ(split.RackOf(MachineId(5)), 1u);
  EXPECT_EQ(split.workers(), 256u);
  EXPECT_EQ(split.racks(), 4u);
  EXPECT_EQ(RackSplit::Default(Layout::JsSafe()).racks(), 1u);
}

TEST(RackSplitTest, RefusesValuesThatDoNotFit) {
  for (const int rack_bits : {-1, 11})
    EXPECT_FALSE(RackSplit::Make(Layout::Firn(), rack_bits).ok());
  for (const int rack_bits : {0, 10}) EXPECT_TRUE(RackSplit::Make(Layout::Firn(), rack_bits).ok());
  const RackSplit split = RackSplit::Default(Layout::Firn());
  EXPECT_EQ(split.Join(256, 4).status().message(),
            "worker 256 is not in 0..255; rack 4 is not in 0..3");
  EXPECT_FALSE(split.Join(UINT64_MAX, 0).ok());
  EXPECT_EQ(*split.Join(255, 3), MachineId(1023));
}

TEST(ComposeTest, UsesTheServersOwnValuesForAbsentFields) {
  const Layout& firn = Layout::Firn();
  EXPECT_EQ(Compose({}, firn, RackSplit::Default(firn), kOwn).value(), firn.Pack(kOwn).value());
  const Result<int64_t> id = Compose({.rack = 2}, firn, RackSplit::Default(firn), kOwn);
  EXPECT_EQ(firn.Unpack(*id)->machine, MachineId(1 << 2 | 2));
}

TEST(ComposeTest, IsTheInverseOfExplainInEveryLayout) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  for (const BuiltInLayouts::Named& built_in : kBuiltInLayouts) {
    const Layout& layout = built_in.layout;
    for (int i = 0; i < 5000; ++i) {
      const auto id = static_cast<int64_t>(entropy.Next() >> entropy.Below(64));
      const int bits =
          static_cast<int>(entropy.Below(static_cast<uint64_t>(layout.machine().width)));
      const RackSplit split = *RackSplit::Make(layout, bits);
      const Result<Explanation> e = Explain(id, layout, split);
      if (!e.ok()) continue;
      const bool by_tick = entropy.Below(2) == 0;
      const bool by_machine = entropy.Below(2) == 0;
      ComposeRequest request{.sequence = e->fields.sequence,
                             .version = e->fields.version,
                             .type = e->fields.type,
                             .method = e->fields.method};
      if (by_tick) request.tick = e->fields.tick.count();
      if (!by_tick) request.time = e->time;
      if (by_machine) request.machine = e->fields.machine.value();
      if (!by_machine) request.worker = e->worker, request.rack = e->rack;
      ASSERT_EQ(Compose(request, layout, split, {}).value(), id) << built_in.name;
    }
  }
}

TEST(ComposeTest, NamesEveryInvalidField) {
  const Layout& firn = Layout::Firn();
  const std::pair<ComposeRequest, std::vector<std::string>> cases[] = {
      {{.tick = 1, .time = firn.epoch()}, {"a tick and as a date"}},
      {{.machine = 1, .rack = 0}, {"as a machine id and as a worker or rack"}},
      {{.machine = uint64_t{1} << 32}, {"machine 4294967296 is not in 0..1023"}},
      {{.tick = -1, .worker = 256, .rack = 4, .sequence = 4096, .method = 1},
       {"time -1", "worker 256", "rack 4", "sequence 4096", "no method"}},
      {{.time = firn.epoch() - Milliseconds(1)}, {"2023-12-31T23:59:59.999Z is not from"}},
      {{.time = firn.end()}, {"is not from"}},
      {{.version = 0}, {"no version"}},
  };
  for (const auto& [request, faults] : cases) {
    const Status status = Compose(request, firn, RackSplit::Default(firn), kOwn).status();
    EXPECT_EQ(status.code(), Code::kInvalid);
    for (const std::string& fault : faults) EXPECT_THAT(status.message(), HasSubstr(fault));
  }
}

TEST(TransTimeTest, ConvertsBothWaysWithinTheTimeFieldOnly) {
  const Layout& vesta = Layout::VestaMaxPeak();
  EXPECT_EQ(*TimeOfTick(vesta, 12758739), WallMs(1420041600000 + 12758739000));
  EXPECT_EQ(*TickOfTime(vesta, WallMs(1420041600000 + 12758739999)), Tick(12758739));
  for (const int64_t tick : {int64_t{-1}, int64_t{1} << 30, INT64_MIN, INT64_MAX}) {
    EXPECT_EQ(TimeOfTick(vesta, tick).code(), Code::kInvalid);
  }
  EXPECT_EQ(*TickOfTime(vesta, *TimeOfTick(vesta, (1 << 30) - 1)), vesta.last_tick());
  EXPECT_FALSE(TickOfTime(vesta, vesta.end()).ok());
}

}  // namespace
}  // namespace firn
