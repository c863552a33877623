#include <gmock/gmock.h>

#include "common/tag/obfuscated_end.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/cluster/tag_store.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using testing::HasSubstr;

// A cluster in memory, and an operator's access to its tags.
class TagLifeTest : public testing::Test {
 protected:
  TagLifeTest() {
    EXPECT_TRUE(registry_.Connect(Milliseconds(1000)).ok());
    ClusterMeta meta;
    meta.uuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";
    meta.era = Nonce(7, 7);
    meta.layout = "firn";
    Do({Write::Create(kMetaPath, FormatMeta(meta), Lifetime::kPersistent),
        Write::Create(EraPath(meta.era), "", Lifetime::kPersistent)});
  }
  void Do(std::vector<Write> writes) {
    const WriteOutcome outcome = registry_.Multi(std::move(writes));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }
  static TagDefinition Segment(const std::string& name) {
    return {.name = name, .strategy = "segment"};
  }
  // Moves the tag's ledger, as a server does when it takes a range.
  void MoveLedger(const std::string& name, int64_t high) {
    StoredTag stored = *store_.Read(name);
    stored.node.tag.high = high;
    Do({Write::Set(TagPath(name), *WriteTagNode(stored.node), stored.stat.version)});
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator memory_{tree_};
  BlockingCoordinator registry_{memory_, clock_};
  TagStore store_{registry_};
};

TEST_F(TagLifeTest, ARetiredTagIsDisabledUntilAnEditEnablesIt) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  MoveLedger("order", 11);
  EXPECT_THAT(store_.Delete("order").message(), HasSubstr("retire it"));
  ASSERT_EQ(store_.Retire("order"), Status());
  StoredTag order = *store_.Read("order");
  EXPECT_TRUE(IsRetired(order.node));
  EXPECT_TRUE(order.tag().disabled);
  EXPECT_EQ(order.tag().high, 11);
  TagDefinition enabled = order.tag();
  enabled.disabled = false;
  ASSERT_EQ(store_.Edit(order, enabled), Status());
  enabled.disabled = true;
  ASSERT_EQ(store_.Edit(*store_.Read("order"), enabled), Status());
  EXPECT_FALSE(IsRetired(store_.Read("order")->node)) << "disabled again, and not retired";
}

TEST_F(TagLifeTest, AnObfuscatedTagThatCannotHoldTheLayoutsIdsForAYearIsRefused) {
  TagDefinition hidden{.name = "hidden", .strategy = "snowflake", .plugins = {"obfuscate"}};
  hidden.obfuscate_key = "k1";
  hidden.obfuscate_check = "c6a13b";
  for (const int64_t width : {6, 12, 17}) {
    hidden.obfuscate_width = width;
    const Status refused = store_.Create(hidden);
    EXPECT_EQ(refused.code(), Code::kInvalid) << width;
    EXPECT_THAT(refused.message(), HasSubstr("obfuscate.width=19")) << width;
  }
  ASSERT_TRUE(store_.Create(Segment("hidden")).ok());
  EXPECT_EQ(store_.Edit(*store_.Read("hidden"), hidden).code(), Code::kInvalid);
  ASSERT_TRUE(store_.Delete("hidden").ok());

  hidden.obfuscate_width = 18;
  const WallMs end = ObfuscatedEnd(hidden, Layout::Firn()).value_or(WallMs());
  clock_.Advance(end - kObfuscatedLeast + Milliseconds(1) - clock_.Wall());
  EXPECT_EQ(store_.Create(hidden).code(), Code::kInvalid) << "it ends within a year";
  clock_.StepWall(Milliseconds(-1));
  EXPECT_EQ(store_.Create(hidden), Status());
  hidden.name = "for ever";
  hidden.obfuscate_width = 19;
  EXPECT_EQ(store_.Create(hidden), Status());
}

}  // namespace
}  // namespace firn
