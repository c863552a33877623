#include <cstdint>

#include "registry/operate/restore.h"
#include "registry/seam/node_version.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

constexpr Milliseconds kManyRenewals{400'000};
constexpr int64_t kFroms[] = {INT32_MAX - 4, INT32_MAX, -6, -3, -2};

// A slot whose record's version wraps after many writes.
class ClaimWrapTest : public ClaimKeeperTest {
 protected:
  void SetUp() override { Make(); }
  void Make() {
    MakeClusterWith(1);
    disk_ = {};
  }
  void ExpectHeldThroughout(ClaimHost& host) {
    EXPECT_TRUE(Serves(host)) << host.status().reason;
    EXPECT_FALSE(host.Told(ClaimEvent::Kind::kLost));
    EXPECT_FALSE(host.Told(ClaimEvent::Kind::kAlarm));
    EXPECT_FALSE(Meta().frozen) << Meta().reason;
    EXPECT_EQ(host.status().renewals.failed, 0u);
  }
  int64_t Version() { return tree_.Peek(SlotPath({0, 0}))->stat.version; }
};

TEST_F(ClaimWrapTest, ClaimsRenewsAndReleasesAcrossTheWrap) {
  for (const bool skips : {false, true}) {
    if (skips) tree_.SkipUnguarded();
    for (const int64_t from : kFroms) {
      Make();
      tree_.SetVersion(SlotPath({0, 0}), from);
      auto host = Start();
      Run(kManyRenewals, *host);
      ExpectHeldThroughout(*host);
      EXPECT_TRUE(IsOlder(from, Version()));
      host->keeper().Release(host->Time());
      Run(kAMoment, *host);
      EXPECT_TRUE(RecordOf(0).nonce.zero());
    }
  }
}

TEST_F(ClaimWrapTest, InheritsAClaimAcrossTheWrap) {
  for (const int64_t from : kFroms) {
    for (int64_t sets = 0; sets < 8; ++sets) {
      Make();
      tree_.SetVersion(SlotPath({0, 0}), from);
      auto host = Start();
      Run(kAMoment + sets * Milliseconds(1'000), *host);
      host.reset();
      host = Start();
      Run(kAMoment, *host);
      EXPECT_TRUE(host->Told(ClaimEvent::Kind::kInherited)) << from << " " << sets;
      EXPECT_FALSE(Meta().frozen) << Meta().reason;
    }
  }
}

TEST_F(ClaimWrapTest, ReadsBackAnUnknownOutcomeAcrossTheWrap) {
  for (const int64_t from : kFroms) {
    Make();
    tree_.SetVersion(SlotPath({0, 0}), from);
    auto host = Start();
    host->link().Script(Verb::kMulti, {});
    for (int i = 0; i < 6; ++i) {
      host->link().Script(Verb::kMulti, {Fate::Kind::kAnswerLost, {}, Milliseconds(20)});
    }
    Run(kManyRenewals, *host);
    EXPECT_TRUE(Serves(*host)) << host->status().reason;
    EXPECT_FALSE(Meta().frozen) << Meta().reason;
    EXPECT_FALSE(host->Told(ClaimEvent::Kind::kLost));
  }
}

TEST_F(ClaimWrapTest, DetectsARecordThatWentBackAcrossTheWrap) {
  tree_.SetVersion(SlotPath({0, 0}), INT32_MAX);
  const auto before = tree_.Save();
  auto host = Start();
  Run(Milliseconds(20'000), *host);
  tree_.Load(before);
  Run(kAMoment, *host);
  EXPECT_TRUE(Meta().frozen);
}

TEST_F(ClaimWrapTest, TheRootNodesVersionWrapsToo) {
  for (const int64_t from : {int64_t{INT32_MAX}, int64_t{-2}}) {
    Make();
    tree_.SetVersion(kMetaPath, from);
    auto host = Start();
    Run(kAMoment, *host);
    ASSERT_TRUE(Serves(*host));
    RestoreFacts facts;
    facts.now = clock_.Wall();
    AsOperator([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(RestoreCluster(registry, facts, entropy_).ok());
    });
    EXPECT_NE(tree_.Peek(kMetaPath)->stat.version, -1);
    Run(Milliseconds(40'000), *host);
    EXPECT_FALSE(Meta().frozen) << Meta().reason;
    EXPECT_TRUE(Serves(*host)) << host->status().reason;
  }
}

TEST_F(ClaimWrapTest, ARestoreMakesUnguardedNodesUsable) {
  for (const std::string& path : {SlotPath({0, 0}), std::string(kMetaPath)}) {
    Make();
    tree_.SetVersion(path, -1);
    auto host = Start();
    Run(kAMoment, *host);
    EXPECT_FALSE(host->user().has_claim());
    RestoreFacts facts;
    facts.now = clock_.Wall();
    AsOperator([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(RestoreCluster(registry, facts, entropy_).ok());
    });
    Run(Milliseconds(10'000), *host);
    EXPECT_TRUE(Serves(*host)) << host->status().reason;
  }
}

}  // namespace
}  // namespace firn
