#include "server/store/ledger.h"

#include <algorithm>
#include <cstdint>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/server/store/ledger_rig.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::Pair;
using Kind = Fate::Kind;

class LedgerTest : public testing::Test {
 protected:
  LedgerCluster cluster_;
  LedgerHost host_{cluster_}, other_{cluster_};
};

TEST_F(LedgerTest, RangesAreConsecutive) {
  EXPECT_EQ(*host_.Extend(10), (Range{1, 11}));
  EXPECT_EQ(*host_.Extend(7), (Range{11, 18}));
  EXPECT_EQ(*other_.Extend(3), (Range{18, 21}));
  EXPECT_EQ(*host_.Extend(10), (Range{21, 31}));
  EXPECT_EQ(cluster_.High("order"), 31);
}

TEST_F(LedgerTest, AVersionThatWrapsIsNotANewCreation) {
  for (const bool skips : {false, true}) {
    if (skips) cluster_.tree().SkipUnguarded();
    for (const int64_t from : {int64_t{INT32_MAX} - 1, int64_t{-3}, int64_t{-2}}) {
      cluster_.tree().SetVersion(TagPath("order"), from);
      LedgerHost fresh(cluster_);
      int64_t high = cluster_.High("order");
      for (int i = 0; i < 5; ++i) {
        const int64_t begin = std::max<int64_t>(high, 1);
        ASSERT_EQ(*fresh.Extend(10), (Range{begin, begin + 10})) << from;
        high = begin + 10;
      }
      EXPECT_FALSE(cluster_.frozen());
      EXPECT_TRUE(fresh.stopped.empty());
    }
  }
}

TEST_F(LedgerTest, RefusesAnUnguardedNodeUntilARestore) {
  ASSERT_TRUE(host_.Extend(10).ok());
  cluster_.tree().SetVersion(TagPath("order"), -1);
  LedgerHost fresh(cluster_);
  const Result<Range> refused = fresh.Extend(10);
  EXPECT_EQ(refused.code(), Code::kUnavailable);
  EXPECT_NE(refused.status().message().find("firn restore"), std::string::npos);
  EXPECT_FALSE(cluster_.store().Replace(*cluster_.store().Read("order"), {}).ok());
  ASSERT_TRUE(cluster_.store().Lift(*cluster_.store().Read("order"), 0).ok());
  EXPECT_EQ(*fresh.Extend(10), (Range{11, 21}));
}

TEST_F(LedgerTest, TheFirstRangeBeginsAtTheStart) {
  cluster_.Create("user", 5'000);
  EXPECT_EQ(*host_.Extend(10, "user"), (Range{5'000, 5'010}));
  cluster_.Edit("user", [](TagNode& node) { node.tag.start = 9'000; });
  EXPECT_EQ(*host_.Extend(10, "user"), (Range{9'000, 9'010}));
}

TEST_F(LedgerTest, KeepsUnknownFieldsOfLaterVersions) {
  cluster_.Edit("order", [](TagNode& node) { node.others = R"({"quota":5})"; });
  ASSERT_TRUE(host_.Extend(10).ok());
  EXPECT_EQ(cluster_.NodeOf("order").others, R"({"quota":5})");
}

TEST_F(LedgerTest, EndsWithTheLastNumberOf63Bits) {
  cluster_.Move("order", kRangeEnd - 5);
  EXPECT_EQ(*host_.Extend(10), (Range{kRangeEnd - 5, kRangeEnd}));
  EXPECT_EQ(host_.Extend(10).code(), Code::kExhausted);
  EXPECT_EQ(cluster_.High("order"), kRangeEnd);
}

TEST_F(LedgerTest, CoversARangeThatAStoreHasPicked) {
  EXPECT_TRUE(host_.Cover({100, 200}).ok());
  EXPECT_EQ(cluster_.High("order"), 200);
  EXPECT_EQ(host_.Cover({150, 250}).code(), Code::kConflict) << "it begins below the ledger";
  EXPECT_EQ(host_.Cover({300, 300}).code(), Code::kConflict) << "it is empty";
  EXPECT_EQ(cluster_.High("order"), 200) << "a refused call leaves everything unchanged";
  EXPECT_TRUE(host_.Cover({1'000, 1'001}).ok());
}

TEST_F(LedgerTest, SetsAgainAfterAnotherServersMoveBelowItsRange) {
  ASSERT_TRUE(host_.Cover({10, 20}).ok());
  ASSERT_TRUE(other_.Cover({20, 40}).ok());
  EXPECT_TRUE(host_.Cover({50, 60}).ok());
  EXPECT_EQ(cluster_.High("order"), 60);
}

TEST_F(LedgerTest, DiscardsARangeThatAnotherServersMoveHasOvertaken) {
  ASSERT_TRUE(host_.Cover({10, 20}).ok());
  ASSERT_TRUE(other_.Cover({30, 40}).ok());
  EXPECT_EQ(host_.Cover({20, 30}).code(), Code::kConflict);
  EXPECT_EQ(cluster_.High("order"), 40);
}

TEST_F(LedgerTest, AnUnknownOutcomeLosesTheRange) {
  ASSERT_TRUE(host_.Extend(10).ok());
  for (const Kind kind : {Kind::kAnswerLost, Kind::kRequestLost}) {
    host_.registry().Script(Verb::kMulti, {.kind = kind});
    EXPECT_EQ(host_.Extend(10).code(), Code::kUnknown);
  }
  EXPECT_EQ(cluster_.High("order"), 21) << "the first one was done, and its range is wasted";
  EXPECT_EQ(*host_.Extend(10), (Range{21, 31}));
}

TEST_F(LedgerTest, ADelayedWriteIsRejected) {
  ASSERT_TRUE(host_.Extend(10).ok());
  host_.registry().Script(Verb::kMulti, {.kind = Kind::kLate, .apply_after = Milliseconds(2'000)});
  EXPECT_EQ(host_.Extend(10).code(), Code::kUnknown);
  EXPECT_EQ(*host_.Extend(10), (Range{11, 21}));
  cluster_.clock().Advance(Milliseconds(5'000));
  host_.Round();
  EXPECT_EQ(*host_.Extend(10), (Range{21, 31})) << "the delayed write met another version";
}

TEST_F(LedgerTest, AnUnsentRequestLosesNoNumbers) {
  ASSERT_TRUE(host_.Extend(10).ok());
  host_.registry().Script(Verb::kMulti, {.kind = Kind::kRefused});
  EXPECT_EQ(host_.Extend(10).code(), Code::kUnavailable);
  EXPECT_EQ(*host_.Extend(10), (Range{11, 21}));
}

TEST_F(LedgerTest, ReadsEverythingAgainInANewSession) {
  ASSERT_TRUE(host_.Extend(10).ok());
  cluster_.tree().Expire(host_.registry().session());
  host_.Round();
  ASSERT_TRUE(other_.Extend(10).ok());
  EXPECT_EQ(*host_.Extend(10), (Range{21, 31}));
}

TEST_F(LedgerTest, ReadsEverythingAgainAfterARootChange) {
  ASSERT_TRUE(host_.Extend(10).ok());
  cluster_.Thaw();
  EXPECT_EQ(*host_.Extend(10), (Range{11, 21}));
}

TEST_F(LedgerTest, WritesNothingWhileTheClusterIsFrozen) {
  cluster_.Create("user");
  ASSERT_TRUE(host_.Extend(10).ok());
  ASSERT_TRUE(host_.Extend(10, "user").ok());
  cluster_.Move("order", 5);
  EXPECT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  ASSERT_TRUE(host_.Until([&] { return cluster_.frozen(); }));
  EXPECT_EQ(host_.Extend(10, "user").code(), Code::kUnavailable);
  EXPECT_EQ(cluster_.High("user"), 11);
}

TEST_F(LedgerTest, StopsATagWhoseLedgerHasFallenAndFreezesTheCluster) {
  ASSERT_TRUE(host_.Extend(10).ok());
  const MemoryTree::Image backup = cluster_.tree().Save();
  ASSERT_TRUE(host_.Extend(10).ok());
  cluster_.tree().Load(backup);
  host_.Round();
  other_.Round();
  const Result<Range> after = host_.Extend(10);
  EXPECT_EQ(after.code(), Code::kCorrupt);
  EXPECT_THAT(after.status().message(), HasSubstr("is at 11 and was at 21"));
  EXPECT_THAT(host_.stopped, ElementsAre("order"));
  EXPECT_TRUE(host_.Until([&] { return cluster_.frozen(); }));
  EXPECT_EQ(other_.Extend(10).code(), Code::kUnavailable) << "no server takes ranges meanwhile";
}

TEST_F(LedgerTest, ResumesOnceTheClusterIsRestored) {
  ASSERT_TRUE(host_.Extend(100).ok());
  cluster_.Move("order", 5);
  ASSERT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  ASSERT_TRUE(host_.Until([&] { return cluster_.frozen(); }));
  cluster_.Move("order", 1'101);
  cluster_.Thaw();
  EXPECT_EQ(*host_.Extend(10), (Range{1'101, 1'111}));
}

// The freeze concerns data that an operator has repaired meanwhile.
TEST_F(LedgerTest, ALossSeenBeforeARestoreDoesNotFreezeTheRestoredCluster) {
  ASSERT_TRUE(host_.Extend(100).ok());
  cluster_.Move("order", 5);
  ASSERT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  cluster_.Move("order", 1'101);
  cluster_.Restore();
  EXPECT_FALSE(host_.Until([&] { return cluster_.frozen(); }));
  EXPECT_EQ(*host_.Extend(10), (Range{1'101, 1'111}));
}

TEST_F(LedgerTest, ALossSeenDuringARestoreDoesNotFreezeTheRestoredCluster) {
  ASSERT_TRUE(host_.Extend(100).ok());
  cluster_.Move("order", 5);
  cluster_.BeginRestore();
  host_.registry().Script(Verb::kSync, {});
  host_.registry().Script(Verb::kSync, {.apply_after = Milliseconds(100)});  // of a freeze
  ASSERT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  cluster_.Move("order", 1'101);
  cluster_.Thaw();
  EXPECT_FALSE(host_.Until([&] { return cluster_.frozen(); }));
  EXPECT_EQ(*host_.Extend(10), (Range{1'101, 1'111}));
}

TEST_F(LedgerTest, FreezesAgainIfARestoreHasNotRepairedTheLoss) {
  ASSERT_TRUE(host_.Extend(100).ok());
  cluster_.Move("order", 5);
  ASSERT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  cluster_.Restore();
  EXPECT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  EXPECT_TRUE(host_.Until([&] { return cluster_.frozen(); }));
}

TEST_F(LedgerTest, AClusterCreatedAfterALostRootNodeIsNotFrozen) {
  ASSERT_TRUE(host_.Extend(10).ok());
  const MemoryTree::Image whole = cluster_.tree().Save();
  cluster_.tree().Load({}, MemoryTree::Sessions::kStay);
  ASSERT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  cluster_.tree().Load(whole, MemoryTree::Sessions::kStay);
  cluster_.Restore();
  EXPECT_FALSE(host_.Until([&] { return cluster_.frozen(); }));
}

TEST_F(LedgerTest, StopsATagWhoseNodeIsMissing) {
  ASSERT_TRUE(host_.Extend(10).ok());
  cluster_.Erase("order");
  EXPECT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  EXPECT_THAT(host_.stopped, ElementsAre("order"));
  EXPECT_TRUE(host_.Until([&] { return cluster_.frozen(); }));
}

TEST_F(LedgerTest, AnUnknownTagIsNotALoss) {
  EXPECT_EQ(host_.Extend(10, "user").code(), Code::kNotFound);
  EXPECT_THAT(host_.stopped, IsEmpty());
  EXPECT_FALSE(cluster_.frozen());
}

TEST_F(LedgerTest, ServesATagRecreatedAboveEverythingSeen) {
  ASSERT_TRUE(host_.Extend(100).ok());
  cluster_.Erase("order");
  cluster_.Create("order", 500);
  EXPECT_EQ(*host_.Extend(10), (Range{500, 510}));
  cluster_.Erase("order");
  cluster_.Create("order", 400);
  EXPECT_EQ(host_.Extend(10).code(), Code::kCorrupt);
}

TEST_F(LedgerTest, DoesNotOverwriteARecreatedNodeOfTheSameVersion) {
  const int64_t version = cluster_.store().Read("order")->stat.version;
  ASSERT_TRUE(host_.Cover({1, 1'000}).ok());
  cluster_.Erase("order");
  cluster_.Create("order");
  while (cluster_.store().Read("order")->stat.version <= version) cluster_.Move("order", 1);
  EXPECT_EQ(host_.Cover({1'000, 1'010}).code(), Code::kCorrupt);
  EXPECT_THAT(host_.stopped, ElementsAre("order"));
}

TEST_F(LedgerTest, ADeletedTagIsRefusedAndIsNotALoss) {
  ASSERT_EQ(host_.Begin(LedgerTag()).value_or(0), 1) << "the tag is known here but not used";
  ASSERT_TRUE(cluster_.store().Delete("order").ok());
  EXPECT_EQ(host_.Extend(10).code(), Code::kNotFound);
  EXPECT_EQ(host_.Cover({1, 11}).code(), Code::kNotFound);
  EXPECT_THAT(host_.redefined, Not(IsEmpty())) << "it must be read again";
  EXPECT_THAT(host_.stopped, IsEmpty());
  cluster_.Create("order");
  EXPECT_EQ(*host_.Extend(10), (Range{1, 11}));
  EXPECT_EQ(cluster_.store().Delete("order").code(), Code::kConflict);
  EXPECT_FALSE(cluster_.frozen());
}

TEST_F(LedgerTest, AUsedTagMarkedAsDeletedIsALoss) {
  ASSERT_TRUE(cluster_.store().Delete("order").ok());
  const MemoryTree::Image unused = cluster_.tree().Save();
  cluster_.Create("order");
  ASSERT_TRUE(host_.Extend(10).ok());
  cluster_.tree().Load(unused, MemoryTree::Sessions::kStay);
  EXPECT_EQ(host_.Extend(10).code(), Code::kCorrupt);
  EXPECT_THAT(host_.stopped, ElementsAre("order"));
  EXPECT_TRUE(host_.Until([&] { return cluster_.frozen(); }));
}

TEST_F(LedgerTest, RefusesRangesOfADisabledTag) {
  ASSERT_TRUE(host_.Extend(10).ok());
  cluster_.Edit("order", [](TagNode& node) { node.tag.disabled = true; });
  EXPECT_EQ(host_.Extend(10).code(), Code::kDenied);
  EXPECT_EQ(cluster_.High("order"), 11);
}

TEST_F(LedgerTest, TakesBackTheTailThatEndsAtTheLedger) {
  ASSERT_TRUE(host_.Extend(100).ok());
  EXPECT_TRUE(host_.GiveBack({41, 101}).ok());
  EXPECT_EQ(cluster_.High("order"), 41);
  EXPECT_EQ(cluster_.NodeOf("order").returned, 60);
  EXPECT_EQ(*other_.Extend(10), (Range{41, 51}));
}

TEST_F(LedgerTest, AReturnedTailIsNotALossForServersThatSawItTaken) {
  ASSERT_TRUE(host_.Extend(100).ok());
  ASSERT_TRUE(other_.Extend(10).ok());
  ASSERT_TRUE(other_.GiveBack({105, 111}).ok());
  EXPECT_EQ(*host_.Extend(10), (Range{105, 115}));
  EXPECT_THAT(host_.stopped, IsEmpty());
}

TEST_F(LedgerTest, RefusesATailThatIsNotTheLastRange) {
  ASSERT_TRUE(host_.Extend(100).ok());
  ASSERT_TRUE(other_.Extend(10).ok());
  EXPECT_EQ(host_.GiveBack({50, 101}).code(), Code::kConflict);
  EXPECT_EQ(host_.GiveBack({111, 111}).code(), Code::kConflict);
  EXPECT_EQ(cluster_.High("order"), 111);
}

TEST_F(LedgerTest, ChecksAnOldReadingBeforeStoppingTheTag) {
  const TagNode old = cluster_.NodeOf("order");
  ASSERT_TRUE(host_.Extend(100).ok());
  host_.ledger().Saw("order", old);
  host_.ledger().Saw("order", std::nullopt);
  for (int i = 0; i < 10; ++i) host_.Round();
  EXPECT_THAT(host_.stopped, IsEmpty());
  EXPECT_FALSE(cluster_.frozen());
}

// A follower does this when it re-reads the tags while a range is being taken.
TEST_F(LedgerTest, AnOldReadingDuringASetDoesNotStopTheTag) {
  const TagNode old = cluster_.NodeOf("order");
  ASSERT_EQ(host_.Extend(100).value_or({}), (Range{1, 101}));
  for (const bool overtaken : {false, true}) {
    if (overtaken) cluster_.Move("order", 500);
    std::optional<Result<Range>> told;
    host_.ledger().Extend(LedgerTag(), 10, [&](Result<Range> range) { told = std::move(range); });
    host_.ledger().Saw("order", old);
    ASSERT_TRUE(host_.Until([&] { return told.has_value(); }));
    ASSERT_TRUE(told->ok()) << told->status();
    EXPECT_EQ(told->value_or({}), (overtaken ? Range{500, 510} : Range{101, 111}));
  }
  EXPECT_EQ(host_.Extend(10).value_or({}), (Range{510, 520}));
  EXPECT_THAT(host_.stopped, IsEmpty());
  EXPECT_FALSE(cluster_.frozen());
}

TEST_F(LedgerTest, RepeatsAReadingThatALaterOneHasOvertaken) {
  std::optional<Result<Range>> told;
  host_.ledger().Extend(LedgerTag(), 10, [&](Result<Range> range) { told = std::move(range); });
  host_.registry().Dispatch(Milliseconds(0));  // answered, but not processed yet
  cluster_.Move("order", 500);
  host_.ledger().Saw("order", cluster_.NodeOf("order"));
  ASSERT_TRUE(host_.Until([&] { return told.has_value(); }));
  ASSERT_TRUE(told->ok()) << told->status();
  EXPECT_EQ(told->value_or({}), (Range{500, 510}));
  EXPECT_THAT(host_.stopped, IsEmpty());
  EXPECT_FALSE(cluster_.frozen());
}

TEST_F(LedgerTest, ReadingsByOthersCountAsSeen) {
  cluster_.Move("order", 5'000);
  host_.ledger().Saw("order", cluster_.NodeOf("order"));
  cluster_.Move("order", 4'000);
  host_.ledger().Saw("order", cluster_.NodeOf("order"));
  EXPECT_TRUE(host_.Until([&] { return cluster_.frozen(); }));
  EXPECT_THAT(host_.stopped, testing::Not(IsEmpty()));
}

TEST_F(LedgerTest, ReportsItsOwnMovesBeforeTheyAreReadAgain) {
  cluster_.Create("user", 5'000);
  EXPECT_THAT(host_.Highest(), IsEmpty());
  ASSERT_TRUE(host_.Extend(10).ok());
  ASSERT_TRUE(host_.Extend(10, "user").ok());
  EXPECT_THAT(host_.Highest(), ElementsAre(Pair("order", 11), Pair("user", 5'010)));
  ASSERT_TRUE(other_.Extend(10).ok());
  cluster_.Move("order", 5);
  static_cast<void>(other_.Extend(10));
  EXPECT_EQ(other_.Highest().at("order"), 21) << "a loss does not reset what was reported";
}

TEST_F(LedgerTest, VerbsOfOneTagRunInOrder) {
  std::vector<int64_t> begins;
  for (int i = 0; i < 5; ++i) {
    host_.ledger().Extend(LedgerTag(), 10,
                          [&](Result<Range> range) { begins.push_back(range->begin); });
  }
  ASSERT_TRUE(host_.Until([&] { return begins.size() == 5; }));
  EXPECT_THAT(begins, ElementsAre(1, 11, 21, 31, 41));
}

TEST_F(LedgerTest, RefusesMoreVerbsThanItsLimit) {
  size_t refused = 0;
  for (size_t i = 0; i < Ledger::kQueueMax + 3; ++i) {
    host_.ledger().Extend(LedgerTag(), 1, [&](const Result<Range>& range) {
      if (range.code() == Code::kUnavailable) ++refused;
    });
  }
  EXPECT_EQ(refused, 3u);
}

}  // namespace
}  // namespace firn
