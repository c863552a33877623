#include "common/id/layout.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

std::vector<Layout> LayoutsOfAllShapes() {
  std::vector<Layout> layouts;
  for (const BuiltInLayouts::Named& built_in : kBuiltInLayouts) layouts.push_back(built_in.layout);
  for (const char* text : {
           "time:31s machine:10 sequence:22",
           "sequence:12 machine:10 time:41",
           "machine:1 time:39@10ms sequence:1 epoch:1970-01-01",
           "method:3=5 time:20@3600s machine:9 zero:4 sequence:17 type:2=2",
           "version:2=1 time:40 sequence:12 machine:10",
           "version:1=1 time:41 machine:10 sequence:12",
           "time:1 machine:1 sequence:1",
           "sequence:52 time:1 machine:10",
       }) {
    layouts.push_back(*Layout::Parse(text));
  }
  return layouts;
}

// Draws a number that fits the field. The field's limits are much more frequent than in a uniform
// draw.
uint64_t AnyOf(const Field& field, Entropy& entropy) {
  switch (entropy.Below(8)) {
    case 0:
      return 0;
    case 1:
      return field.max();
    default:
      return entropy.Next() & field.max();
  }
}

std::optional<uint64_t> AnyConst(const Layout& layout, FieldKind kind, Entropy& entropy) {
  const Field* field = layout.Find(kind);
  if (field == nullptr) return std::nullopt;
  return field->is_fixed() ? field->value : AnyOf(*field, entropy);
}

IdFields AnyFields(const Layout& layout, Entropy& entropy) {
  return {Tick(static_cast<int64_t>(AnyOf(layout.time(), entropy))),
          MachineId(static_cast<uint32_t>(AnyOf(layout.machine(), entropy))),
          AnyOf(layout.sequence(), entropy),
          AnyConst(layout, FieldKind::kVersion, entropy),
          AnyConst(layout, FieldKind::kType, entropy),
          AnyConst(layout, FieldKind::kMethod, entropy)};
}

class EveryLayout : public ::testing::TestWithParam<Layout> {
 protected:
  const Layout layout_ = GetParam();
  const uint64_t seed_ = TestSeed();
  SeededEntropy entropy_{seed_};
};

TEST_P(EveryLayout, UnpackIsTheInverseOfPack) {
  SCOPED_TRACE(SeedText(seed_));
  for (int i = 0; i < 20'000; ++i) {
    const IdFields fields = AnyFields(layout_, entropy_);
    const Result<int64_t> id = layout_.Pack(fields);
    ASSERT_TRUE(id.ok()) << id.status();
    const Result<IdFields> back = layout_.Unpack(*id);
    ASSERT_TRUE(back.ok()) << back.status();
    ASSERT_EQ(*back, fields) << *id;
  }
}

TEST_P(EveryLayout, PackIsTheInverseOfUnpack) {
  SCOPED_TRACE(SeedText(seed_));
  int of_layout = 0;
  for (int i = 0; i < 20'000; ++i) {
    const auto id = static_cast<int64_t>(entropy_.Next() >> entropy_.Below(64));
    const Result<IdFields> fields = layout_.Unpack(id);
    if (!fields.ok()) continue;
    ++of_layout;
    ASSERT_EQ(*layout_.Pack(*fields), id);
  }
  EXPECT_GT(of_layout, 0);
}

TEST_P(EveryLayout, UncheckedPackingAgrees) {
  SCOPED_TRACE(SeedText(seed_));
  for (int i = 0; i < 1000; ++i) {
    IdFields fields = AnyFields(layout_, entropy_);
    fields.version.reset();
    const uint64_t base = layout_.BaseBits(fields.machine, fields.method.value_or(0));
    ASSERT_EQ(layout_.PackUnchecked(base, fields.tick, fields.sequence), *layout_.Pack(fields));
  }
}

TEST_P(EveryLayout, RefusesEachFieldOneBeyondItsRange) {
  const auto refusal = [&](auto spoil) {
    IdFields fields = AnyFields(layout_, entropy_);
    spoil(fields);
    return layout_.Pack(fields).status().message();
  };
  const auto beyond = [](const Field& field) { return field.max() + 1; };
  EXPECT_THAT(refusal([&](IdFields& f) { f.tick = layout_.last_tick() + 1; }), HasSubstr("time "));
  EXPECT_THAT(refusal([&](IdFields& f) { f.tick = Tick(-1); }), HasSubstr("time -1"));
  EXPECT_THAT(refusal([&](IdFields& f) {
                f.machine = MachineId(static_cast<uint32_t>(beyond(layout_.machine())));
              }),
              HasSubstr("machine "));
  EXPECT_THAT(refusal([&](IdFields& f) { f.sequence = beyond(layout_.sequence()); }),
              HasSubstr("sequence "));
  for (const auto& [kind, member] : {std::pair(FieldKind::kVersion, &IdFields::version),
                                     {FieldKind::kType, &IdFields::type},
                                     {FieldKind::kMethod, &IdFields::method}}) {
    const Field* field = layout_.Find(kind);
    const uint64_t wrong = field != nullptr ? beyond(*field) : 0;
    EXPECT_THAT(refusal([&, at = member](IdFields& f) { f.*at = wrong; }),
                HasSubstr(std::string(FieldName(kind))));
  }
}

TEST_P(EveryLayout, FieldsNeitherOverlapNorReachBeyondTheId) {
  uint64_t taken = 0;
  int below = 64;
  for (const Field& field : layout_.fields()) {
    EXPECT_EQ(taken & field.mask(), 0u);
    EXPECT_LE(field.shift + field.width, below);
    taken |= field.mask();
    below = field.shift;
  }
  EXPECT_EQ(below, 0);
}

TEST_P(EveryLayout, IsNegativeOnlyWhereTheVersionSaysSo) {
  for (int i = 0; i < 1000; ++i) {
    const IdFields fields = AnyFields(layout_, entropy_);
    const Field* version = layout_.Find(FieldKind::kVersion);
    const bool asked = version != nullptr && (version->mask() >> 63) != 0 &&
                       (*fields.version >> (version->width - 1)) != 0;
    ASSERT_EQ(*layout_.Pack(fields) < 0, asked);
  }
}

TEST_P(EveryLayout, ConsecutiveIdsAreOneStrideApart) {
  const uint64_t base = layout_.BaseBits(MachineId(1), 0);
  const int64_t first = layout_.PackUnchecked(base, Tick(1), 0);
  const int64_t second = layout_.PackUnchecked(base, Tick(1), 1);
  EXPECT_EQ(second - first, layout_.stride());
}

TEST_P(EveryLayout, TicksCoverTimeWithoutGaps) {
  for (const int64_t n : {int64_t{0}, int64_t{1}, layout_.last_tick().count()}) {
    const WallMs start = layout_.StartOf(Tick(n));
    const WallMs last_ms = start + Milliseconds(layout_.tick_ms() - 1);
    EXPECT_EQ(layout_.TickAt(start), Tick(n));
    EXPECT_EQ(layout_.TickAt(last_ms), Tick(n));
    EXPECT_EQ(layout_.TickAt(start - Milliseconds(1)), Tick(n - 1));
    EXPECT_EQ(layout_.FirstTickFrom(start), Tick(n));
    EXPECT_EQ(layout_.FirstTickFrom(start + Milliseconds(1)), Tick(n + 1));
    EXPECT_EQ(layout_.FirstTickFrom(last_ms + Milliseconds(1)), Tick(n + 1));
  }
}

TEST_P(EveryLayout, ExtremeTimesDoNotOverflow) {
  for (const int64_t ms : {INT64_MIN, INT64_MIN + 1, INT64_MAX - 1, INT64_MAX}) {
    EXPECT_EQ(layout_.TickAt(WallMs(ms)) < Tick(0), ms < 0);
    EXPECT_EQ(layout_.FirstTickFrom(WallMs(ms)) < Tick(0), ms < 0);
  }
}

TEST_P(EveryLayout, TextIsReadBack) {
  const Result<Layout> back = Layout::Parse(layout_.text());
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, layout_);
  EXPECT_EQ(back->text(), layout_.text());
}

TEST_P(EveryLayout, TextDiffersFromEveryOtherLayouts) {
  for (const Layout& other : LayoutsOfAllShapes()) {
    EXPECT_EQ(other == layout_, other.text() == layout_.text());
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, EveryLayout, ::testing::ValuesIn(LayoutsOfAllShapes()));

TEST(LayoutTest, RefusesAnIdWithABitOutsideItsFields) {
  EXPECT_FALSE(Layout::Firn().Unpack(-1).ok());
  EXPECT_FALSE(Layout::JsSafe().Unpack(int64_t{1} << 53).ok());
  EXPECT_TRUE(Layout::JsSafe().Unpack((int64_t{1} << 53) - 1).ok());
  // The type field determines which of Vesta's layouts an id has.
  EXPECT_FALSE(Layout::VestaMaxPeak().Unpack(5869465123034242053).ok());
}

TEST(LayoutTest, NamesAllFieldsThatDoNotFit) {
  const Status status = Layout::Firn().Pack({Tick(-1), MachineId(1024), 4096, {}, {}, 1}).status();
  EXPECT_EQ(status.code(), Code::kInvalid);
  for (const char* fault : {"time -1", "machine 1024", "sequence 4096", "no method"}) {
    EXPECT_THAT(status.message(), HasSubstr(fault));
  }
}

TEST(LayoutTest, ReportsItsLimits) {
  EXPECT_EQ(Layout::Firn().ids_per_tick(), 4096u);
  EXPECT_EQ(Layout::Firn().machines(), 1024u);
  EXPECT_EQ(Layout::Firn().stride(), 1);
  EXPECT_EQ(Layout::VestaMaxPeak().stride(), 1024);
  EXPECT_EQ(Layout::VestaMaxPeak().ids_per_tick(), 1u << 20);
  EXPECT_EQ(Layout::JsSafe().machines(), 64u);
  EXPECT_EQ(Layout::Firn().end(), WallMs(1704067200000 + (int64_t{1} << 41)));
}

TEST(LayoutDeathTest, AMachineWiderThanItsFieldNeverReachesAnId) {
  EXPECT_DEATH(static_cast<void>(Layout::JsSafe().BaseBits(MachineId(64), 0)), "wider than");
  EXPECT_DEATH(static_cast<void>(Layout::VestaMaxPeak().BaseBits(MachineId(0), 4)), "wider than");
}

}  // namespace
}  // namespace firn
