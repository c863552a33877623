#include <gtest/gtest.h>

#include "common/id/layout.h"

namespace firn {
namespace {

// The vectors are checked at compile time.
constexpr int64_t Packed(const Layout& layout, MachineId machine, uint64_t method, Tick tick,
                         uint64_t sequence) {
  return layout.PackUnchecked(layout.BaseBits(machine, method), tick, sequence);
}
static_assert(Packed(Layout::Firn(), MachineId(0), 0, Tick(0), 0) == 0);
static_assert(Packed(Layout::Twitter(), MachineId(39), 0,
                     Layout::Twitter().TickAt(WallMs(1567733700834)), 3448) == 1169786042799259000);
static_assert(Packed(Layout::VestaMaxPeak(), MachineId(1022), 2, Tick(12758739), 0) ==
              2319542600899494910);
static_assert(Packed(Layout::VestaMaxPeak(), MachineId(1), 0, Tick(12235264), 0) ==
              13137514684481537);
static_assert(Packed(Layout::VestaMinGranularity(), MachineId(5), 1, Tick(100000000000), 7) ==
              5869465123034242053);
static_assert(std::is_trivially_copyable_v<Layout>);

TEST(LayoutVectorsTest, FirnsFirstIdIsZeroAtItsEpoch) {
  const Layout layout = Layout::Firn();
  EXPECT_EQ(layout.StartOf(Tick(0)), WallMs(1704067200000));
  EXPECT_EQ(*layout.Unpack(0), (IdFields{Tick(0), MachineId(0), 0}));
}

TEST(LayoutVectorsTest, Twitter) {
  const Result<IdFields> fields = Layout::Twitter().Unpack(1169786042799259000);
  ASSERT_TRUE(fields.ok());
  EXPECT_EQ(Layout::Twitter().StartOf(fields->tick), WallMs(1567733700834));
  EXPECT_EQ(fields->machine, MachineId(39));
  EXPECT_EQ(fields->sequence, 3448u);
}

TEST(LayoutVectorsTest, Vesta) {
  EXPECT_EQ(*Layout::VestaMaxPeak().Unpack(2319542600899494910),
            (IdFields{Tick(12758739), MachineId(1022), 0, 0, 0, 2}));
  EXPECT_EQ(*Layout::VestaMaxPeak().Unpack(13137514684481537),
            (IdFields{Tick(12235264), MachineId(1), 0, 0, 0, 0}));
  EXPECT_EQ(*Layout::VestaMinGranularity().Unpack(5869465123034242053),
            (IdFields{Tick(100000000000), MachineId(5), 7, 0, 1, 1}));
}

}  // namespace
}  // namespace firn
