#include "registry/operate/who.h"

#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/reserved.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

constexpr Slot kSlot{.rack = 1, .worker = 2};

// A cluster in which slot 2 of rack 1 was held by "first" from 1000 to 2000, by "second" from 2000
// to 3000 (ms after the layout's epoch), and is held by "third" from 4000 on, up to 5000.
class WhoTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(registry_.Connect(Milliseconds(0)).ok());
    ASSERT_TRUE(MakeCluster(registry_, {.workers = 3}, entropy_).ok());
    PastHolders past;
    past.Add(Holder("first", 1000, 2000));
    past.Add(Holder("second", 2000, 3000));
    Put(Write::Create(PastPath(kSlot), past.Text(), Lifetime::kPersistent));
    PutRecord("third", 4000, 5000);
  }

  static WallMs At(int64_t ms) { return Layout::Firn().epoch() + Milliseconds(ms); }
  static PastHolder Holder(std::string owner, int64_t first, int64_t end) {
    return {std::move(owner), "host", 7, At(first), At(end)};
  }
  void Put(Write write) { ASSERT_TRUE(registry_.Multi({std::move(write)}).status.ok()); }
  void PutRecord(std::string owner, int64_t since, int64_t bound) {
    const SlotRecord record{.nonce = Nonce::Draw(entropy_),
                            .bound = At(bound),
                            .owner = std::move(owner),
                            .since = At(since),
                            .host = "host",
                            .pid = 7};
    Put(Write::Set(SlotPath(kSlot), FormatSlotRecord(record), Write::kAnyVersion));
  }

  Issuers Who(int64_t ms, Slot slot = kSlot) {
    const Layout layout = Layout::Firn();
    const MachineId machine = *RackSplit::Default(layout).Join(slot.worker, slot.rack);
    const auto id = layout.Pack({.tick = Tick(ms), .machine = machine, .sequence = 5});
    auto found = FindIssuers(registry_, {*id});
    EXPECT_TRUE(found.ok()) << found.status();
    return found.ok() ? found->front() : Issuers{};
  }

  SeededEntropy entropy_{1};
  VirtualClock clock_{WallMs(1'750'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator coordinator_{tree_};
  BlockingCoordinator registry_{coordinator_, clock_};
};

TEST_F(WhoTest, NamesThePresentHolder) {
  const Issuers found = Who(4999);
  ASSERT_EQ(found.holders.size(), 1u);
  EXPECT_EQ(found.holders[0].owner, "third");
  EXPECT_TRUE(found.present);
}

TEST_F(WhoTest, NamesPastHoldersUpToTheirLastTick) {
  EXPECT_EQ(Who(1000).holders, std::vector{Holder("first", 1000, 2000)});
  EXPECT_EQ(Who(1999).holders, std::vector{Holder("first", 1000, 2000)});
  EXPECT_EQ(Who(2000).holders, std::vector{Holder("second", 2000, 3000)});
  EXPECT_FALSE(Who(2000).present);
}

TEST_F(WhoTest, ReportsWhyTheHolderIsUnknown) {
  EXPECT_THAT(Who(999).unknown, HasSubstr("begin later"));
  EXPECT_THAT(Who(3500).unknown, HasSubstr("was not held"));
  EXPECT_THAT(Who(5000).unknown, HasSubstr("has not been granted"));
  EXPECT_THAT(Who(4000, {.rack = 1, .worker = 1}).unknown, HasSubstr("has ever claimed"));
  EXPECT_THAT(Who(4000, {.rack = 1, .worker = 200}).unknown, HasSubstr("no record"));
}

TEST_F(WhoTest, ReportsSinceWhenARestoredClusterHasRecords) {
  MetaAsRead root = *ReadMeta(registry_);
  root.meta.floor = At(1);
  ASSERT_TRUE(SetMeta(registry_, root).ok());
  const Slot unused{.rack = 1, .worker = 1};
  EXPECT_THAT(Who(4000, unused).unknown, HasSubstr("begin at 2025-06-15"));
  EXPECT_THAT(Who(999).unknown, HasSubstr("begin at 2025-06-15"));
  EXPECT_THAT(Who(3500).unknown, HasSubstr("was not held"));
  EXPECT_EQ(Who(4500).holders.size(), 1u);
  const SlotRecord lost{.bound = At(4000), .owner = std::string(kRestoredOwner), .since = At(4000)};
  Put(Write::Set(SlotPath(unused), FormatSlotRecord(lost), Write::kAnyVersion));
  EXPECT_THAT(Who(4500, unused).unknown, HasSubstr("begin at 2025-06-15"));
}

// The holder may have renewed its claim by writes that the registry has lost.
TEST_F(WhoTest, NamesTheHolderWhoseRecordWentBackBeforeTheRestore) {
  ClusterMeta meta = ReadMeta(registry_)->meta;
  meta.floor = At(6000);
  Put(Write::Set(kMetaPath, FormatMeta(meta), Write::kAnyVersion));
  EXPECT_THAT(Who(5000).unknown, HasSubstr("third held that machine id before"));
  EXPECT_THAT(Who(6000).unknown, HasSubstr("has not been granted"));
  PutRecord("fourth", 6000, 7000);
  EXPECT_THAT(Who(7000).unknown, HasSubstr("has not been granted"));
}

TEST_F(WhoTest, IgnoresAnUnreadablePast) {
  Put(Write::Set(PastPath(kSlot), "scribble", Write::kAnyVersion));
  EXPECT_EQ(Who(4500).holders.size(), 1u);
  EXPECT_THAT(Who(1500).unknown, HasSubstr("past"));
}

TEST_F(WhoTest, RefusesAnIdThatIsImpossibleInTheLayout) {
  EXPECT_EQ(FindIssuers(registry_, {-1}).code(), Code::kInvalid);
}

TEST_F(WhoTest, ReportsAMissingCluster) {
  tree_.Wipe();
  coordinator_.Dispatch(Milliseconds(0));
  EXPECT_EQ(FindIssuers(registry_, {1}).code(), Code::kNotFound);
}

}  // namespace
}  // namespace firn
