#include "registry/owners/owner_records.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

const Beat kBeat{.address = "10.1.2.3:7609",
                 .secret = Nonce(1, 2),
                 .word = Nonce(3, 4),
                 .window = Milliseconds(2'500),
                 .ended = true,
                 .unreachable = "10.1.2.4:7609,10.1.2.5:7609",
                 .tls = true,
                 .leaving = true,
                 .young = true};

TEST(OwnerRecordsTest, BeatReadsBack) {
  const Result<Beat> read = ParseBeat(FormatBeat(kBeat));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, kBeat);
}

TEST(OwnerRecordsTest, ListsWholeAddresses) {
  EXPECT_TRUE(Lists(kBeat.unreachable, "10.1.2.4:7609"));
  EXPECT_TRUE(Lists(kBeat.unreachable, "10.1.2.5:7609"));
  EXPECT_FALSE(Lists(kBeat.unreachable, "10.1.2.5:760"));
  EXPECT_FALSE(Lists("", "10.1.2.5:7609"));
}

TEST(OwnerRecordsTest, ABeatOfAnEarlierVersionHasFewerMembers) {
  Beat beat = kBeat;
  beat.unreachable.clear();
  beat.tls.reset();
  beat.leaving = beat.young = false;
  EXPECT_EQ(FormatBeat(beat).find("unreachable"), std::string::npos);
  EXPECT_EQ(FormatBeat(beat).find("tls"), std::string::npos);
  EXPECT_EQ(FormatBeat(beat).find("leaving"), std::string::npos);
  EXPECT_EQ(FormatBeat(beat).find("young"), std::string::npos);
  EXPECT_EQ(ParseBeat(FormatBeat(beat)).value(), beat);
}

TEST(OwnerRecordsTest, PartitionReadsBack) {
  const PartitionOwner owner{.tenure = Nonce(5, 6), .address = "[::1]:7609", .change = Nonce(7, 8)};
  const Result<PartitionOwner> read = ParsePartitionOwner(FormatPartitionOwner(owner));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(*read, owner);
}

TEST(OwnerRecordsTest, MembersOfLaterVersionsAreKept) {
  std::string text = FormatBeat(kBeat);
  text.back() = ',';
  text += R"("later":7})";
  const Result<Beat> read = ParseBeat(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_NE(FormatBeat(*read).find(R"("later":7)"), std::string::npos);
}

// A shorter window than its owner's would let another server take over too early.
TEST(OwnerRecordsTest, RefusesBeatWithImpossibleWindow) {
  for (const int64_t ms : {0, 999, 30'001}) {
    Beat beat = kBeat;
    beat.window = Milliseconds(ms);
    EXPECT_EQ(ParseBeat(FormatBeat(beat)).code(), Code::kCorrupt) << ms;
  }
}

TEST(OwnerRecordsTest, RefusesOtherText) {
  EXPECT_EQ(ParseBeat("").code(), Code::kCorrupt);
  EXPECT_EQ(ParseBeat("{}").code(), Code::kCorrupt);
  EXPECT_EQ(ParsePartitionOwner("{}").code(), Code::kCorrupt);
  EXPECT_EQ(ParsePartitionOwner(R"({"tenure":"12","address":""})").code(), Code::kCorrupt);
  EXPECT_EQ(ParsePartitionOwner(FormatPartitionOwner({.tenure = Nonce(5, 6)})).code(),
            Code::kCorrupt);
}

TEST(OwnerRecordsTest, PathsNameTenureAndPartition) {
  EXPECT_EQ(BeatPath(Nonce(0, 1)), "/owners/beats/00000000000000000000000000000001");
  EXPECT_EQ(AlivePath(Nonce(0, 1)), "/owners/beats/00000000000000000000000000000001/alive");
  EXPECT_EQ(PartitionPath(7), "/owners/partitions/7");
  EXPECT_EQ(ChangePath(7, Nonce(0, 1)), "/owners/partitions/7/00000000000000000000000000000001");
}

}  // namespace
}  // namespace firn
