#include <gmock/gmock.h>

#include "registry/cluster/tag_node.h"
#include "registry/owners/candidates.h"
#include "registry/owners/owner_records.h"
#include "tests/registry/operate/audit_fixture.h"

namespace firn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr Milliseconds kTwoWindows = 2 * Beat::kWindowMax;
constexpr Nonce kTenure{1, 2};

// A cluster with a server and the tag `order`, whose numbers need an owner.
class AuditOwnersTest : public AuditTest {
 protected:
  void SetUp() override {
    AuditTest::SetUp();
    Put(std::string(kTagsPath), "");
    MakeOwnedTag("order");
    MakeProvidersFolder();
    AnnounceAs("h:1", FormatReport({}));
    for (const char* path : {kOwnersPath, kBeatsPath, kPartitionsPath}) Put(path, "");
  }
  void MakeOwnedTag(const std::string& name) {
    TagDefinition tag{.name = name, .strategy = "segment"};
    tag.buffer = TagBuffer::kOwner;
    Put(TagPath(name), *WriteTagNode({.tag = tag}));
  }
  void PutBeat(const Nonce& tenure, bool ended = false) {
    Put(BeatPath(tenure), FormatBeat({.address = "h:1", .ended = ended}));
  }
  void PutOwner(const Nonce& tenure) {
    Put(path_, FormatPartitionOwner({.tenure = tenure, .address = "h:1", .change = Nonce(5, 6)}));
  }
  // The registry's clock has advanced, and another server's beat shows it.
  void Pass(Milliseconds time) {
    clock_.Advance(time);
    PutBeat(Nonce(3, 4));
  }
  void ExpectFinding(const std::string& why) {
    const Audit audit = Read();
    ASSERT_THAT(audit.Faults(),
                ElementsAre(AllOf(HasSubstr("no server owns the numbers of tag 'order': "),
                                  HasSubstr(why))));
    EXPECT_EQ(audit.findings.front().urgency, Urgency::kRefused);
    EXPECT_NE(audit.findings.front().fix, "");
  }

  const std::string path_ = PartitionPath(PartitionOf("order"));
};

TEST_F(AuditOwnersTest, FindsNothingWhileTheOwnerRenewsItsBeat) {
  PutOwner(kTenure);
  for (int i = 0; i < 3; ++i) {
    Pass(kTwoWindows);
    PutBeat(kTenure);
    EXPECT_THAT(Read().Faults(), IsEmpty());
  }
}

TEST_F(AuditOwnersTest, ShowsTheOwnerOfEachPartitionAndSinceWhen) {
  PutOwner(kTenure);
  const WallMs since = clock_.Wall();
  PutBeat(kTenure);
  Pass(kTwoWindows);
  PutBeat(kTenure);
  const Audit audit = Read();
  ASSERT_EQ(audit.partitions.size(), 1u);
  EXPECT_EQ(audit.partitions[0].partition, PartitionOf("order"));
  EXPECT_THAT(audit.partitions[0].tags, ElementsAre("order"));
  EXPECT_EQ(audit.partitions[0].owner, "h:1");
  EXPECT_EQ(audit.partitions[0].since, since);
}

TEST_F(AuditOwnersTest, ShowsNoOwnerWhoseTenureHasEnded) {
  PutOwner(kTenure);
  EXPECT_EQ(Read().partitions.at(0).owner, "");
  PutBeat(kTenure, /*ended=*/true);
  EXPECT_EQ(Read().partitions.at(0).owner, "");
  PutBeat(kTenure);
  EXPECT_EQ(Read().partitions.at(0).owner, "h:1");
  Pass(kTwoWindows);  // without a renewal
  EXPECT_EQ(Read().partitions.at(0).owner, "");
}

TEST_F(AuditOwnersTest, FindsAnOwnerThatNoLongerRenewsItsBeat) {
  PutOwner(kTenure);
  PutBeat(kTenure);
  Pass(kTwoWindows - kMs);
  EXPECT_THAT(Read().Faults(), IsEmpty());
  Pass(kMs);
  ExpectFinding("their owner h:1 no longer renews its beat");
}

TEST_F(AuditOwnersTest, FindsAnOwnerWithALongerWindowLater) {
  PutOwner(kTenure);
  const Milliseconds window{4'000};
  Put(BeatPath(kTenure), FormatBeat({.address = "h:1", .window = window}));
  Pass(2 * window - kMs);
  EXPECT_THAT(Read().Faults(), IsEmpty());
  Pass(kMs);
  ExpectFinding("their owner h:1 no longer renews its beat");
}

TEST_F(AuditOwnersTest, FindsAnOwnerThatHasEnded) {
  PutOwner(kTenure);
  PutBeat(kTenure, /*ended=*/true);
  Pass(kTwoWindows);
  ExpectFinding("their owner h:1 has stopped owning");
}

TEST_F(AuditOwnersTest, FindsAMissingBeat) {
  PutOwner(kTenure);
  Pass(kTwoWindows);
  ExpectFinding("the beat of their owner h:1 is missing");
}

TEST_F(AuditOwnersTest, FindsAFreePartition) {
  PutOwner(Nonce());
  Pass(kTwoWindows - kMs);
  EXPECT_THAT(Read().Faults(), IsEmpty());
  Pass(kMs);
  ExpectFinding("their last owner has handed over");
}

TEST_F(AuditOwnersTest, FindsAPartitionThatNeverHadAnOwner) {
  EXPECT_THAT(Read().Faults(), IsEmpty());
  Pass(kTwoWindows);
  ExpectFinding("no server has owned them yet");
}

// No server renews a beat, so only the auditor's clock shows that time has passed.
TEST_F(AuditOwnersTest, FindsItAfterAMinuteIfNoServerRenewsABeat) {
  PutOwner(kTenure);
  PutBeat(kTenure);
  EXPECT_THAT(ReadAudit(registry_, kNow + Milliseconds(59'999))->Faults(), IsEmpty());
  EXPECT_THAT(ReadAudit(registry_, kNow + Milliseconds(60'000))->Faults(),
              ElementsAre(HasSubstr("no longer renews its beat")));
}

// A clock of the registry or of the auditor is wrong.
TEST_F(AuditOwnersTest, FindsNothingIfTheOwnerRenewsMeanwhile) {
  PutOwner(kTenure);
  PutBeat(kTenure);
  Pass(kTwoWindows);
  const Audit renewed = ReadWhile(BeatPath(kTenure), [&] { PutBeat(kTenure); });
  EXPECT_THAT(renewed.Faults(), IsEmpty());
  Pass(kTwoWindows);
  const Audit moved = ReadWhile(BeatPath(kTenure), [&] { PutOwner(Nonce(3, 4)); });
  EXPECT_THAT(moved.Faults(), IsEmpty());
}

TEST_F(AuditOwnersTest, FindsNothingForDisabledTags) {
  TagDefinition tag{.name = "order", .strategy = "segment"};
  tag.buffer = TagBuffer::kOwner;
  tag.disabled = true;
  Put(TagPath("order"), *WriteTagNode({.tag = tag}));
  Pass(kTwoWindows);
  EXPECT_THAT(Read().Faults(), IsEmpty());
}

TEST_F(AuditOwnersTest, FindsUnreadableNodesAtOnce) {
  Put(path_, "?");
  ExpectFinding("the owner of a partition");
  PutOwner(kTenure);
  Put(BeatPath(kTenure), "?");
  ExpectFinding("an owner's beat");
}

TEST_F(AuditOwnersTest, FindsServersThatCannotReachTheOwner) {
  PutOwner(kTenure);
  PutBeat(kTenure);
  const std::string beat = FormatBeat({.address = "h:2", .unreachable = "h:9,h:1"});
  Put(BeatPath(Nonce(7, 8)), beat);
  const Audit audit = Read();
  ASSERT_THAT(audit.Faults(),
              ElementsAre("h:2 cannot reach h:1, the owner of the numbers of tag 'order'"));
  EXPECT_EQ(audit.findings.front().urgency, Urgency::kRefused);
  clock_.Advance(Beat::kWindowMax / 2);
  Put(BeatPath(Nonce(7, 8)), beat);
  EXPECT_THAT(Read().Faults(), IsEmpty()) << "h:1 no longer renews its beat";
  clock_.Advance(kTwoWindows);
  PutBeat(kTenure);
  EXPECT_THAT(Read().Faults(), IsEmpty()) << "h:2 no longer renews its beat";
}

TEST_F(AuditOwnersTest, ReportsThePartitionOnceForAllOfItsTags) {
  std::string other = "a";
  while (PartitionOf(other) != PartitionOf("order")) other += "a";
  MakeOwnedTag(other);
  Pass(kTwoWindows);
  EXPECT_THAT(Read().Faults(), ElementsAre(HasSubstr(" and 1 more: ")));
}

TEST_F(AuditOwnersTest, FindsNothingInAClusterWithoutServersOrThatIsFrozen) {
  Pass(kTwoWindows);
  SetMeta([](ClusterMeta& meta) { meta.frozen = true; });
  EXPECT_THAT(Read().Faults(), ElementsAre(HasSubstr("the cluster is frozen")));
  SetMeta([](ClusterMeta& meta) { meta.frozen = false; });
  Provider provider;
  provider.address = "h:1";
  Erase(ProviderPath(provider));
  EXPECT_THAT(Read().Faults(), IsEmpty());
}

}  // namespace
}  // namespace firn
