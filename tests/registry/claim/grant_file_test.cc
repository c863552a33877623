#include "registry/state/grant_file.h"

#include <string>

#include <gtest/gtest.h>

#include "registry/cluster/records.h"
#include "tests/support/registry/memory_state_folder.h"

namespace firn {
namespace {

constexpr auto kVolatile = StateFolder::Durability::kPageCache;

Grant GrantUpTo(int64_t limit_ms) {
  return {.nonce = Nonce(1, 2),
          .word = Nonce(3, 4),
          .pending_word = Nonce(5, 6),
          .slot = {1, 7},
          .machine = MachineId(29),
          .bound = WallMs(900),
          .limit = WallMs(limit_ms),
          .version = 3,
          .created_zxid = 4,
          .meta_version = 5,
          .uuid = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1",
          .clocks = {.id_time = WallMs(95), .boot = BootMs(7), .time_namespace = 4026531834}};
}

class GrantFileTest : public testing::Test {
 protected:
  Result<GrantFile::Found> Restarted() { return GrantFile(folder_).Read(); }

  MemoryDisk disk_;
  MemoryStateFolder folder_{disk_};
  GrantFile file_{folder_};
};

TEST_F(GrantFileTest, ANewFileIsEmpty) { EXPECT_EQ(file_.Read().code(), Code::kNotFound); }

TEST_F(GrantFileTest, ReadsTheLastOfManyWrites) {
  for (int64_t limit = 100; limit < 107; ++limit) {
    ASSERT_TRUE(file_.Write(GrantUpTo(limit), kVolatile).ok());
    const auto found = Restarted();
    ASSERT_TRUE(found.ok()) << found.status();
    EXPECT_EQ(found->grant, GrantUpTo(limit));
    EXPECT_EQ(found->identity, disk_.identity);
    EXPECT_FALSE(found->damaged);
  }
  EXPECT_EQ(disk_.grant.size(), StateFolder::kGrantBytes);
}

TEST_F(GrantFileTest, ARestartUsesTheNewerRecord) {
  ASSERT_TRUE(file_.Write(GrantUpTo(100), kVolatile).ok());
  ASSERT_TRUE(file_.Write(GrantUpTo(101), kVolatile).ok());
  GrantFile restarted(folder_);
  ASSERT_TRUE(restarted.Read().ok());
  ASSERT_TRUE(restarted.Write(GrantUpTo(102), kVolatile).ok());
  EXPECT_EQ(Restarted()->grant.limit, WallMs(102));
}

// The counter of the next record would wrap, so that record would count as the older one.
TEST_F(GrantFileTest, RefusesACounterAtItsMaximum) {
  const GrantRecord last{
      .counter = UINT64_MAX, .grant = GrantUpTo(100), .identity = disk_.identity};
  disk_.grant.replace(0, GrantFile::kRecordBytes, FormatGrantRecord(last));
  EXPECT_EQ(file_.Read().code(), Code::kCorrupt);
  ASSERT_TRUE(file_.Write(GrantUpTo(101), kVolatile).ok());
  EXPECT_EQ(Restarted()->grant.limit, WallMs(101));
}

TEST_F(GrantFileTest, ReportsDamageToOneRecord) {
  ASSERT_TRUE(file_.Write(GrantUpTo(100), kVolatile).ok());
  ASSERT_TRUE(file_.Write(GrantUpTo(101), kVolatile).ok());
  for (size_t at = 0; at < GrantFile::kRecordBytes; at += 13) {
    const std::string whole = disk_.grant;
    disk_.grant[at] ^= 1;
    const auto found = Restarted();
    ASSERT_TRUE(found.ok());
    EXPECT_TRUE(found->damaged) << at;
    EXPECT_EQ(found->grant.limit, WallMs(101));
    disk_.grant = whole;
  }
}

TEST_F(GrantFileTest, DamageToBothIsCorrupt) {
  disk_.grant.assign(StateFolder::kGrantBytes, 'x');
  EXPECT_EQ(file_.Read().code(), Code::kCorrupt);
  disk_.grant.resize(17);
  EXPECT_EQ(file_.Read().code(), Code::kCorrupt);
}

TEST_F(GrantFileTest, VoidHoldsEvenIfOneRecordIsDamagedLater) {
  ASSERT_TRUE(file_.Write(GrantUpTo(100), kVolatile).ok());
  ASSERT_TRUE(file_.Write(GrantUpTo(101), kVolatile).ok());
  ASSERT_TRUE(file_.Void(kVolatile).ok());
  EXPECT_EQ(Restarted().code(), Code::kNotFound);
  disk_.grant[3] = '!';
  EXPECT_EQ(Restarted().code(), Code::kNotFound);
}

TEST_F(GrantFileTest, AFailedWriteChangesNothing) {
  ASSERT_TRUE(file_.Write(GrantUpTo(100), kVolatile).ok());
  disk_.grant_writes_fail = true;
  EXPECT_FALSE(file_.Write(GrantUpTo(101), kVolatile).ok());
  disk_.grant_writes_fail = false;
  EXPECT_EQ(Restarted()->grant.limit, WallMs(100));
  ASSERT_TRUE(file_.Write(GrantUpTo(102), kVolatile).ok());
  EXPECT_EQ(Restarted()->grant.limit, WallMs(102));
}

TEST_F(GrantFileTest, EveryFieldReadsBackAsWritten) {
  const GrantRecord record{77, GrantUpTo(5), {"b00t", {8, 9, 10}, {11, 12, 13}}};
  EXPECT_EQ(*ParseGrantRecord(FormatGrantRecord(record)), record);
}

// The registry's versions have 32 bits and wrap.
TEST_F(GrantFileTest, VersionsMayBeNegative) {
  GrantRecord record{77, GrantUpTo(5), {"b00t", {8, 9, 10}, {11, 12, 13}}};
  for (const int64_t version : {int64_t{INT32_MIN}, int64_t{-2}, int64_t{INT32_MAX}}) {
    record.grant.version = version;
    record.grant.meta_version = version;
    EXPECT_EQ(*ParseGrantRecord(FormatGrantRecord(record)), record) << version;
  }
  record.grant.version = int64_t{INT32_MAX} + 1;
  EXPECT_EQ(ParseGrantRecord(FormatGrantRecord(record)).code(), Code::kCorrupt);
}

TEST_F(GrantFileTest, OfflineHoldersReadBackAsWritten) {
  GrantRecord record{77, GrantUpTo(5), {"b00t", {8, 9, 10}, {11, 12, 13}}};
  const std::string without = FormatGrantRecord(record);
  EXPECT_TRUE(without.starts_with("firn-grant 2 ")) << "earlier versions read it";
  record.grant.offline = {{WallMs(100), 5}, {WallMs(200), 0}};
  const std::string with = FormatGrantRecord(record);
  EXPECT_TRUE(with.starts_with("firn-grant 3 "));
  EXPECT_EQ(*ParseGrantRecord(with), record);
}

TEST_F(GrantFileTest, OfArbitrarilyManyOfflineHoldersTheFirstAndTheLastAreKept) {
  std::vector<OfflineHolder> holders;
  for (int64_t i = 1; i <= 20; ++i) AddOfflineHolder(holders, {WallMs(100 * i), i});
  ASSERT_EQ(holders.size(), kOfflineHoldersMax);
  EXPECT_EQ(holders[0], (OfflineHolder{WallMs(100), 1}));
  EXPECT_EQ(holders[5], (OfflineHolder{WallMs(600), 6}));
  EXPECT_EQ(holders[6], (OfflineHolder{WallMs(700), 0})) << "several processes";
  EXPECT_EQ(holders[7], (OfflineHolder{WallMs(2'000), 20}));
  AddOfflineHolder(holders, {WallMs(2'000), 21});
  EXPECT_EQ(holders[7], (OfflineHolder{WallMs(2'000), 21})) << "20 has issued nothing";
}

// A record has room for the longest value of every field.
TEST_F(GrantFileTest, TheLongestRecordFits) {
  GrantRecord record{
      INT64_MAX - 1, GrantUpTo(5), {std::string(64, 'b'), {~0UL, ~0UL, ~0UL}, {~0UL, ~0UL, ~0UL}}};
  record.grant.slot = {UINT32_MAX, UINT32_MAX};
  record.grant.machine = MachineId(UINT32_MAX);
  record.grant.bound = record.grant.limit = record.grant.clocks.id_time = kRecordTimeMax;
  record.grant.version = record.grant.meta_version = INT32_MIN;
  record.grant.created_zxid = INT64_MAX;
  record.grant.clocks.boot = BootMs(INT64_MAX);
  record.grant.clocks.time_namespace = UINT64_MAX;
  record.grant.offline.assign(kOfflineHoldersMax, {kRecordTimeMax, INT64_MAX});
  EXPECT_EQ(*ParseGrantRecord(FormatGrantRecord(record)), record);
}

}  // namespace
}  // namespace firn
