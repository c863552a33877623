#include "registry/operate/upgrade.h"

#include "registry/servers/provider.h"
#include "tests/registry/claim/claim_keeper_fixture.h"

namespace firn {
namespace {

constexpr int64_t kNext = ClusterMeta::kFormat + 1;

class UpgradeTest : public ClaimKeeperTest {
 protected:
  Result<UpgradeReport> Upgrade(int64_t to = kNext) {
    Result<UpgradeReport> report = Invalid("not run");
    AsOperator([&](BlockingCoordinator& registry) { report = UpgradeCluster(registry, to); });
    return report;
  }

  void Announce(const std::string& address, const std::string& report) {
    AsOperator([&](BlockingCoordinator& registry) {
      for (const auto path : {kServicePath, kProvidersPath}) {
        static_cast<void>(
            registry.Multi({Write::Create(std::string(path), "", Lifetime::kPersistent)}));
      }
      const std::string name = ProviderNodeName({.address = address, .build = "some build"});
      ASSERT_TRUE(registry
                      .Multi({Write::Create(std::string(kProvidersPath) + "/" + name, report,
                                            Lifetime::kPersistent)})
                      .status.ok());
    });
  }

  std::string Root() { return tree_.Peek(kMetaPath)->data; }
};

TEST_F(UpgradeTest, RaisesTheFormatAndKeepsEverythingElse) {
  ClusterMeta before = Meta();
  before.others = R"({"later":[1]})";
  Write1(kMetaPath, FormatMeta(before));
  Announce("h:1", FormatReport({.format = kNext}));
  const auto report = Upgrade();
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->from, ClusterMeta::kFormat);
  EXPECT_EQ(report->to, kNext);
  before.format = kNext;
  EXPECT_EQ(Root(), FormatMeta(before));
}

TEST_F(UpgradeTest, TheCurrentFormatChangesNothing) {
  const int64_t version = tree_.Peek(kMetaPath)->stat.version;
  const auto report = Upgrade(ClusterMeta::kFormat);
  ASSERT_TRUE(report.ok()) << report.status();
  EXPECT_EQ(report->from, report->to);
  EXPECT_EQ(tree_.Peek(kMetaPath)->stat.version, version);
}

TEST_F(UpgradeTest, NamesTheServersThatAreTooOld) {
  Announce("h:1", FormatReport({.format = kNext}));
  Announce("h:2", FormatReport({.format = ClusterMeta::kFormat}));
  Announce("h:3", R"({"state":"serving"})");
  Announce("h:4", "rubbish");
  const auto report = Upgrade();
  EXPECT_EQ(report.code(), Code::kConflict);
  const std::string said = report.status().message();
  EXPECT_EQ(said.find("h:1"), std::string::npos) << said;
  for (const char* elder : {"h:2 (some build)", "h:3", "h:4"}) {
    EXPECT_NE(said.find(elder), std::string::npos) << said;
  }
  EXPECT_EQ(Meta().format, ClusterMeta::kFormat);
}

TEST_F(UpgradeTest, NamesProgramsThatOnlyHoldAMachineId) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const auto report = Upgrade();
  EXPECT_EQ(report.code(), Code::kConflict);
  EXPECT_NE(report.status().message().find("a:1 in rack 0 worker"), std::string::npos)
      << report.status();
}

// The claim of a disconnected program belongs to the previous root node, so it is not renewed and
// lapses.
TEST_F(UpgradeTest, AProgramWithoutTheFormatCannotClaim) {
  auto host = Start();
  Run(Milliseconds(100), *host);
  const WallMs bound = host->status().bound;
  ClusterMeta meta = Meta();
  meta.format = kNext;
  Write1(kMetaPath, FormatMeta(meta));
  Run(bound - clock_.Wall() + Milliseconds(5'000), *host);
  EXPECT_FALSE(Serves(*host));
  EXPECT_NE(host->status().reason.find("install a newer Firn"), std::string::npos)
      << host->status().reason;
}

TEST_F(UpgradeTest, AFrozenClusterMustBeRestoredFirst) {
  ClusterMeta meta = Meta();
  meta.frozen = true;
  meta.reason = "lost";
  Write1(kMetaPath, FormatMeta(meta));
  EXPECT_EQ(Upgrade().code(), Code::kConflict);
}

}  // namespace
}  // namespace firn
