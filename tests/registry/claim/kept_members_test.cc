// Members of later versions: every writer of a node preserves them.

#include "registry/operate/restore.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

constexpr char kLater[] = R"("reserved":{"until":7,"by":["a","b"]},"x":1.5)";

std::string WithLater(const std::string& json) {
  return json.substr(0, json.size() - 1) + "," + kLater + "}";
}

class KeptMembersTest : public ClaimKeeperTest {
 protected:
  void SetUp() override { MakeClusterWith(1); }

  // Adds members to the node as a newer tool does, without another change.
  void AddLater(const std::string& path) { Write1(path, WithLater(tree_.Peek(path)->data)); }

  bool HasLater(const std::string& path) {
    return tree_.Peek(path)->data.find(kLater) != std::string::npos;
  }
};

TEST_F(KeptMembersTest, ClaimRenewalAndReleaseKeepThem) {
  AddLater(SlotPath({0, 0}));
  auto host = Start();
  Run(Milliseconds(100), *host);
  ASSERT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_TRUE(HasLater(SlotPath({0, 0}))) << "claimed";
  const WallMs bound = RecordOf(0).bound;
  Run(Milliseconds(1'000), *host);
  EXPECT_GT(RecordOf(0).bound, bound);
  EXPECT_TRUE(HasLater(SlotPath({0, 0}))) << "renewed";
  host->keeper().Release(host->Time());
  Run(Milliseconds(100), *host);
  EXPECT_TRUE(RecordOf(0).nonce.zero());
  EXPECT_TRUE(HasLater(SlotPath({0, 0}))) << "released";
}

TEST_F(KeptMembersTest, AnInheritedClaimKeepsThem) {
  AddLater(SlotPath({0, 0}));
  auto host = Start();
  Run(Milliseconds(500), *host);
  host.reset();
  host = Start();
  Run(Milliseconds(100), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kInherited));
  EXPECT_TRUE(HasLater(SlotPath({0, 0})));
}

TEST_F(KeptMembersTest, AnOfflineStartKeepsThem) {
  AddLater(SlotPath({0, 0}));
  auto host = Start();
  Run(Milliseconds(500), *host);
  host.reset();
  host = Start();
  host->link().Disconnect();
  Run(Milliseconds(400), *host);
  ASSERT_TRUE(host->Told(ClaimEvent::Kind::kOffline));
  const WallMs bound = RecordOf(0).bound;
  host->link().Reconnect();
  Run(Milliseconds(1'500), *host);
  EXPECT_GT(RecordOf(0).bound, bound);
  EXPECT_TRUE(HasLater(SlotPath({0, 0})));
}

TEST_F(KeptMembersTest, KeepsMembersThatAToolAddsUnderAHeldClaim) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  AddLater(SlotPath({0, 0}));
  const WallMs bound = RecordOf(0).bound;
  Run(Milliseconds(10'000), *host);
  EXPECT_EQ(host->keeper().state(), ClaimState::kHolding) << host->status().reason;
  EXPECT_GT(RecordOf(0).bound, bound);
  EXPECT_TRUE(HasLater(SlotPath({0, 0})));
}

TEST_F(KeptMembersTest, ARestoreKeepsThemInRootNodeAndRetiredRecords) {
  SlotRecord poison = RecordOf(0);
  poison.bound = kStart + Milliseconds(365LL * 86'400'000);
  Write1(SlotPath({0, 0}), WithLater(FormatSlotRecord(poison)));
  AddLater(kMetaPath);
  AsOperator([&](BlockingCoordinator& registry) {
    const auto report = RestoreCluster(registry, {.now = clock_.Wall()}, entropy_);
    ASSERT_TRUE(report.ok()) << report.status();
    EXPECT_EQ(report->retired.size(), 1u);
  });
  EXPECT_TRUE(HasLater(kMetaPath));
  EXPECT_TRUE(HasLater(SlotPath({0, 0})));
}

TEST_F(KeptMembersTest, AFreezeKeepsThem) {
  AddLater(kMetaPath);
  auto host = Start();
  Run(Milliseconds(100), *host);
  const auto backup = tree_.Save();
  Run(Milliseconds(5'000), *host);
  tree_.Load(backup);
  Run(Milliseconds(500), *host);
  EXPECT_TRUE(Meta().frozen);
  EXPECT_TRUE(HasLater(kMetaPath));
}

}  // namespace
}  // namespace firn
