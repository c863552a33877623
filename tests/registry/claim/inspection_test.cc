#include "registry/claim/inspection.h"

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

using Judgement = Finding::Verdict;
constexpr char kUuid[] = "0f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1";
constexpr char kOtherUuid[] = "1f1e2d3c-4b5a-4978-8695-a4b3c2d1e0f1";

// Findings of a holder at version 5 of creation 3, under root version 2; each case changes one
// value.
class JudgeTest : public testing::Test {
 protected:
  JudgeTest() {
    held_.nonce = ours_;
    held_.word = Nonce(5, 5);
    held_.pending_word = Nonce(6, 6);
    held_.version = 5;
    held_.created_zxid = 3;
    held_.meta_version = 2;
    held_.uuid = kUuid;
    held_.base = WallMs(50);
    held_.bound = WallMs(100);
    meta_.uuid = kUuid;
    meta_.era = Nonce(7, 7);
    meta_.layout = "firn";
    record_.nonce = ours_;
    record_.word = Nonce(5, 5);
    record_.bound = WallMs(100);
    record_.owner = "another";
  }

  Finding Judged() const {
    Node root{root_data_.value_or(FormatMeta(meta_)), {}};
    root.stat.version = meta_version_;
    Node slot{slot_data_.value_or(FormatSlotRecord(record_)), {}};
    slot.stat.version = version_;
    slot.stat.created_zxid = created_;
    return Judge(held_, root_there_ ? std::optional(root) : std::nullopt,
                 slot_there_ ? std::optional(slot) : std::nullopt);
  }

  const Nonce ours_{1, 2};
  Tenure::Terms held_;
  ClusterMeta meta_;
  SlotRecord record_;
  int64_t meta_version_ = 2;
  int64_t version_ = 5;
  int64_t created_ = 3;
  bool root_there_ = true;
  bool slot_there_ = true;
  std::optional<std::string> root_data_;
  std::optional<std::string> slot_data_;
};

TEST_F(JudgeTest, AnUnchangedRecordIsOurs) { EXPECT_EQ(Judged().verdict, Judgement::kOurs); }

TEST_F(JudgeTest, AdoptsVersionAndBoundOfOurOwnLateWrite) {
  version_ = 7;
  record_.bound = WallMs(120);
  EXPECT_EQ(Judged().verdict, Judgement::kOurs);
  EXPECT_EQ(Judged().version, 7);
  EXPECT_EQ(Judged().record.bound, WallMs(120));
}

TEST_F(JudgeTest, OurNonceWithAnUnknownWordIsATwin) {
  version_ = 6;
  record_.word = Nonce(6, 6);
  EXPECT_EQ(Judged().verdict, Judgement::kOurs) << "a pending write was applied";
  EXPECT_EQ(Judged().record.word, Nonce(6, 6));
  record_.word = Nonce(7, 7);
  EXPECT_EQ(Judged().verdict, Judgement::kTwin);
  held_.pending_word = record_.word = {};
  EXPECT_EQ(Judged().verdict, Judgement::kTwin);
  record_.word = Nonce(5, 5);
  EXPECT_EQ(Judged().verdict, Judgement::kOurs) << "a tool that rewrites a record keeps its word";
}

TEST_F(JudgeTest, AnOlderRecordIsLostDespiteAnotherWord) {
  version_ = 4;
  record_.word = Nonce(4, 4);
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
}

TEST_F(JudgeTest, WrappedVersionsAreNewer) {
  held_.version = held_.meta_version = INT32_MAX;
  version_ = INT32_MIN;
  meta_version_ = INT32_MAX;
  EXPECT_EQ(Judged().verdict, Judgement::kOurs);
  meta_version_ = INT32_MIN;
  EXPECT_EQ(Judged().verdict, Judgement::kMetaMoved);
  version_ = INT32_MAX - 1;
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
}

TEST_F(JudgeTest, AnUnguardedRecordIsNotRenewed) {
  held_.version = -3;
  version_ = -1;
  EXPECT_EQ(Judged().verdict, Judgement::kMetaMoved);
  EXPECT_NE(Judged().reason.find("firn restore"), std::string::npos);
}

TEST_F(JudgeTest, AnothersNonceIsForeign) {
  version_ = 6;
  record_.nonce = Nonce(9, 9);
  EXPECT_EQ(Judged().verdict, Judgement::kForeign);
  EXPECT_NE(Judged().reason.find("another"), std::string::npos);
}

TEST_F(JudgeTest, AnotherCreationIsForeign) {
  created_ = 4;
  EXPECT_EQ(Judged().verdict, Judgement::kForeign);
}

TEST_F(JudgeTest, ARecordRecreatedAboveOurBoundIsRestored) {
  meta_.floor = held_.bound;
  created_ = 4;
  version_ = 0;
  for (const int64_t root : {1, 2, 9}) {
    meta_version_ = root;
    record_ = {};
    EXPECT_EQ(Judged().verdict, Judgement::kRestored);
    record_.nonce = Nonce(9, 9);
    record_.since = held_.bound;
    record_.bound = WallMs(120);
    EXPECT_EQ(Judged().verdict, Judgement::kRestored) << "a new claim that does not overlap ours";
    record_.since = WallMs(99);
    EXPECT_EQ(Judged().verdict, root == 1 ? Judgement::kLost : Judgement::kForeign);
  }
  record_ = {};
  meta_.floor = WallMs(99);
  EXPECT_EQ(Judged().verdict, Judgement::kForeign) << "the restore did not include our bound";
  meta_.floor = held_.bound;
  meta_.uuid = kOtherUuid;
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
  meta_.uuid = kUuid;
  slot_data_ = "rubbish";
  EXPECT_EQ(Judged().verdict, Judgement::kForeign);
}

TEST_F(JudgeTest, ARestoreDoesNotChangeTheVerdictOnOurOwnRecordOrATwins) {
  meta_.floor = held_.bound;
  meta_version_ = 3;
  EXPECT_EQ(Judged().verdict, Judgement::kMetaMoved);
  record_.word = Nonce(8, 8);
  version_ = 6;
  EXPECT_EQ(Judged().verdict, Judgement::kTwin);
}

TEST_F(JudgeTest, OurOwnRecordThatWentBackIsRestoredByAFloorAboveOurBound) {
  for (const bool of_root : {false, true}) {
    meta_version_ = of_root ? 1 : 3;
    version_ = of_root ? 5 : 4;
    meta_.floor = WallMs(99);
    EXPECT_EQ(Judged().verdict, Judgement::kLost);
    meta_.floor = held_.bound;
    EXPECT_EQ(Judged().verdict, Judgement::kRestored);
  }
  meta_version_ = 3;
  record_.word = Nonce(8, 8);
  EXPECT_EQ(Judged().verdict, Judgement::kTwin);
}

TEST_F(JudgeTest, AnUnreadableRecordIsForeign) {
  slot_data_ = "rubbish";
  EXPECT_EQ(Judged().verdict, Judgement::kForeign);
}

TEST_F(JudgeTest, AnUnreadableRootIsForeign) {
  root_data_ = "rubbish";
  EXPECT_EQ(Judged().verdict, Judgement::kForeign);
}

TEST_F(JudgeTest, UnderARootNodeOfANewerFormatAClaimLapses) {
  meta_version_ = 3;
  root_data_ = FormatMeta(meta_);
  const std::string now = "\"format\":" + std::to_string(ClusterMeta::kFormat);
  const size_t at = root_data_->find(now);
  ASSERT_NE(at, std::string::npos) << *root_data_;
  root_data_->replace(at, now.size(), "\"format\":" + std::to_string(ClusterMeta::kFormat + 1));
  EXPECT_EQ(Judged().verdict, Judgement::kMetaMoved);
  record_.nonce = Nonce(9, 9);
  version_ = 6;
  EXPECT_EQ(Judged().verdict, Judgement::kForeign);
}

TEST_F(JudgeTest, ALaterRootVersionIsMetaMoved) {
  meta_version_ = 3;
  EXPECT_EQ(Judged().verdict, Judgement::kMetaMoved);
  record_.nonce = Nonce(9, 9);
  version_ = 6;
  EXPECT_EQ(Judged().verdict, Judgement::kForeign) << "a foreign claim takes precedence";
}

TEST_F(JudgeTest, AMissingOrOlderRootOrSlotIsLost) {
  root_there_ = false;
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
  root_there_ = true;
  slot_there_ = false;
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
  slot_there_ = true;
  version_ = 4;
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
  version_ = 5;
  record_.bound = WallMs(99);
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
  record_.bound = WallMs(100);
  meta_version_ = 1;
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
  meta_version_ = 2;
  meta_.uuid = kOtherUuid;
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
}

TEST_F(JudgeTest, AnOlderRecordIsLostDespiteAnotherHolder) {
  version_ = 4;
  record_.nonce = Nonce(9, 9);
  EXPECT_EQ(Judged().verdict, Judgement::kLost);
}

}  // namespace
}  // namespace firn
