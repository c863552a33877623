// Tests a damaged file of one node. Errors name the file, and all other nodes are unaffected.

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "registry/claim/survey.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/dir/dir_coordinator.h"
#include "registry/dir/folder_watch.h"
#include "registry/seam/blocking_coordinator.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

namespace fs = std::filesystem;
using ::testing::Contains;
using ::testing::Each;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class DirDamageTest : public testing::Test {
 protected:
  DirDamageTest() {
    EXPECT_TRUE(registry_.Connect(kPatience).ok());
    EXPECT_TRUE(MakeCluster(registry_, {.rack_bits = 0, .workers = 3}, SystemEntropy()).ok());
  }

  std::string FileOf(const std::string& path) { return place_ + path + "/node"; }
  void Damage(const std::string& path) { std::ofstream(FileOf(path)) << "firn-node half"; }
  Status Do(Write write) { return registry_.Multi({std::move(write)}).status; }
  void Use(Slot slot) {
    const SlotRecord used{.nonce = Nonce(), .bound = WallMs(5), .owner = "another"};
    ASSERT_TRUE(Do(Write::Set(SlotPath(slot), FormatSlotRecord(used), Write::kAnyVersion)).ok());
  }
  Surveyed LookForSlots() {
    SlotQuery query;
    query.workers = 3;
    query.owner = "me";
    query.now = WallMs(1'000'000);
    AsyncRegistry async_registry(*coordinator_);
    Task<Surveyed> survey = SurveySlots(&async_registry, &SystemEntropy(), query);
    async_registry.Start(survey);
    EXPECT_TRUE(Eventually(kPatience, [&] {
      coordinator_->Dispatch(Milliseconds(1));
      async_registry.Tick(SystemClock().Boot());
      return survey.done();
    }));
    return survey.Take();
  }

  TempDir folder_;
  const std::string place_ = folder_ / "registry";
  std::unique_ptr<DirCoordinator> coordinator_ =
      *DirCoordinator::Open({.path = place_}, SystemClock(), SystemEntropy());
  BlockingCoordinator registry_{*coordinator_, SystemClock()};
};

TEST_F(DirDamageTest, AReadReturnsTheFilesName) {
  Damage("/machines/0/1");
  const Result<Node> read = registry_.Read("/machines/0/1");
  EXPECT_EQ(read.code(), Code::kCorrupt);
  EXPECT_THAT(read.status().message(), HasSubstr(FileOf("/machines/0/1")));
  fs::remove(FileOf("/machines/0/2"));
  fs::create_directory(FileOf("/machines/0/2"));
  EXPECT_EQ(registry_.Read("/machines/0/2").code(), Code::kCorrupt);
}

TEST_F(DirDamageTest, ServersClaimOtherSlots) {
  Damage("/machines/0/1");
  const Surveyed survey = LookForSlots();
  EXPECT_THAT(survey.candidates,
              Each(Field(&SurveyedSlot::slot, Not(Slot{.rack = 0, .worker = 1}))));
  EXPECT_EQ(survey.candidates.size(), 2u) << survey.reason;
  EXPECT_THAT(survey.alarms, Contains(HasSubstr(FileOf("/machines/0/1"))));
}

TEST_F(DirDamageTest, ADamagedLiveNodeDoesNotBlockItsSlot) {
  for (const uint32_t worker : {0u, 1u, 2u}) {
    Use({0, worker});
    const std::string live = LivePath({0, worker});
    ASSERT_TRUE(Do(Write::Create(live, "{}", Lifetime::kPersistent)).ok());
    Damage(live);
  }
  EXPECT_EQ(LookForSlots().candidates.size(), 3u);
}

TEST_F(DirDamageTest, ListsTheChildrenOfADamagedNode) {
  Damage("/machines/0");
  EXPECT_EQ(registry_.List("/machines/0")->size(), 3u);
  EXPECT_EQ(LookForSlots().candidates.size(), 3u);
}

TEST_F(DirDamageTest, AFolderWatchSeesTheOtherNodes) {
  Damage("/machines/0/1");
  int told = 0;
  FolderWatch watch(*coordinator_, SystemEntropy(), "/machines/0", [&] { ++told; });
  const auto see = [&] {
    coordinator_->Dispatch(Milliseconds(1));
    watch.Tick(SystemClock().Boot());
    return told > 0;
  };
  EXPECT_TRUE(Eventually(kPatience, see));
  EXPECT_EQ(watch.nodes().size(), 3u);
  EXPECT_THAT(watch.nodes().at("1").data, IsEmpty());
  told = 0;
  ASSERT_TRUE(Do(Write::Set("/machines/0/1", "repaired", Write::kAnyVersion)).ok());
  EXPECT_TRUE(Eventually(kPatience, see)) << "the repair is not reported yet";
  EXPECT_EQ(watch.nodes().at("1").data, "repaired");
}

// If the folder counted as missing, every node below it would count as deleted.
TEST_F(DirDamageTest, AFolderThatCannotBeExaminedIsNotMissing) {
  const fs::path folder = place_ + "/machines/0";
  fs::rename(folder, folder_ / "moved");
  fs::create_symlink(folder, folder);  // a loop
  EXPECT_EQ(registry_.List("/machines/0").code(), Code::kDenied);
  fs::remove(folder);
  EXPECT_EQ(registry_.List("/machines/0").code(), Code::kNotFound);
}

TEST_F(DirDamageTest, OnlyAWriteWithoutAVersionReplacesItAsANewCreation) {
  const std::string path = "/machines/0/1";
  const NodeStat before = registry_.Read(path)->stat;
  Damage(path);
  for (const int64_t version : {int64_t{0}, int64_t{1}}) {
    EXPECT_EQ(Do(Write::Set(path, "x", version)).code(), Code::kCorrupt);
    EXPECT_EQ(Do(Write::Erase(path, version)).code(), Code::kCorrupt);
    EXPECT_EQ(Do(Write::Check(path, version)).code(), Code::kCorrupt);
  }
  EXPECT_EQ(Do(Write::Check(path, Write::kAnyVersion)).code(), Code::kCorrupt);
  EXPECT_EQ(Do(Write::Create(path, "x", Lifetime::kPersistent)).code(), Code::kCorrupt);
  EXPECT_TRUE(Do(Write::Set(path, "new", Write::kAnyVersion)).ok());
  EXPECT_EQ(registry_.Read(path)->data, "new");
  EXPECT_NE(registry_.Read(path)->stat.created_zxid, before.created_zxid);
  Damage(path);
  EXPECT_TRUE(Do(Write::Erase(path, Write::kAnyVersion)).ok());
  EXPECT_EQ(registry_.Read(path).code(), Code::kNotFound);
}

TEST_F(DirDamageTest, NamesADamagedJournal) {
  std::ofstream(place_ + "/.firn/journal") << "firn-journal 0123\nput 2 1\n/ax";
  EXPECT_THAT(registry_.Read("/").status().message(), HasSubstr(place_ + "/.firn/journal"));
}

}  // namespace
}  // namespace firn
