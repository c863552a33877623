#include "registry/cluster/tag_store.h"

#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// A cluster in memory, and an operator's access to its tags.
class TagStoreTest : public testing::Test {
 protected:
  TagStoreTest() {
    EXPECT_TRUE(registry_.Connect(Milliseconds(1000)).ok());
    Do({Write::Create(kMetaPath, FormatMeta(meta_), Lifetime::kPersistent),
        Write::Create(EraPath(meta_.era), "", Lifetime::kPersistent)});
  }

  void Do(std::vector<Write> writes) {
    const WriteOutcome outcome = registry_.Multi(std::move(writes));
    EXPECT_TRUE(outcome.status.ok()) << outcome.status;
  }

  void ChangeMeta(bool frozen, WallMs floor) {
    meta_.frozen = frozen;
    meta_.floor = floor;
    meta_.reason = "a test says so";
    Do({Write::Set(kMetaPath, FormatMeta(meta_), Write::kAnyVersion)});
  }

  static TagDefinition Segment(const std::string& name) {
    TagDefinition tag;
    tag.name = name;
    tag.strategy = "segment";
    return tag;
  }

  // Takes a range, as a server does.
  void MoveLedger(const std::string& name, int64_t high) {
    StoredTag stored = *store_.Read(name);
    stored.node.tag.high = high;
    Do({Write::Set(TagPath(name), *WriteTagNode(stored.node), stored.stat.version)});
  }

  static ClusterMeta WholeMeta() {
    ClusterMeta meta;
    meta.uuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";
    meta.era = Nonce(7, 7);
    meta.layout = "firn";
    return meta;
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator memory_{tree_};
  BlockingCoordinator registry_{memory_, clock_};
  ClusterMeta meta_ = WholeMeta();
  TagStore store_{registry_};
};

TEST_F(TagStoreTest, ReadsBackWhatWasCreated) {
  ASSERT_TRUE(store_.Create(Segment("a/b c")).ok());
  EXPECT_EQ(store_.Read("a/b c")->tag(), Segment("a/b c"));
  ASSERT_EQ(store_.ReadAll()->tags.size(), 1u);
  EXPECT_EQ(store_.Create(Segment("a/b c")).code(), Code::kConflict);
  EXPECT_EQ(store_.Read("other").code(), Code::kNotFound);
}

TEST_F(TagStoreTest, AnEditKeepsTheLedger) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  MoveLedger("order", 5001);
  const StoredTag read = *store_.Read("order");
  TagDefinition after = read.tag();
  after.step = 50;
  after.high = 7;  // ignored
  ASSERT_TRUE(store_.Replace(read, after).ok());
  EXPECT_EQ(store_.Read("order")->tag().high, 5001);
  EXPECT_EQ(store_.Read("order")->tag().step, 50);
}

TEST_F(TagStoreTest, AnEditOfTheStoreOrItsFallbackResetsTheStandIn) {
  TagDefinition tag = Segment("order");
  tag.store = "main";
  tag.when_store_is_away = StoreAway::kLedger;
  const auto after = [&](const std::function<void(TagDefinition&)>& edit) {
    StoredTag stored = *store_.Read("order");
    stored.node.stand_in = {.store = "main", .picked = 1};
    Do({Write::Set(TagPath("order"), *WriteTagNode(stored.node), stored.stat.version)});
    TagDefinition edited = tag;
    edit(edited);
    EXPECT_EQ(store_.Replace(*store_.Read("order"), edited), Status());
    return store_.Read("order")->node.stand_in.store;
  };
  ASSERT_TRUE(store_.Create(tag).ok());
  EXPECT_EQ(after([](TagDefinition& to) { to.step = 7; }), "main");
  EXPECT_EQ(after([](TagDefinition& to) { to.when_store_is_away = StoreAway::kRefuse; }), "");
  EXPECT_EQ(after([](TagDefinition& to) { to.store = "other"; }), "");
}

TEST_F(TagStoreTest, RefusesAReplacementAfterALedgerWrite) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  const StoredTag read = *store_.Read("order");
  MoveLedger("order", 5001);
  EXPECT_EQ(store_.Replace(read, read.tag()).code(), Code::kConflict);
  EXPECT_EQ(store_.Read("order")->tag().high, 5001);
}

TEST_F(TagStoreTest, AnOperatorsEditIsRetriedAfterALedgerWriteOnly) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  const StoredTag read = *store_.Read("order");
  TagDefinition after = read.tag();
  after.disabled = true;
  MoveLedger("order", 5001);
  ASSERT_TRUE(store_.Edit(read, after).ok());
  EXPECT_TRUE(store_.Read("order")->tag().disabled);
  EXPECT_EQ(store_.Read("order")->tag().high, 5001);

  TagDefinition other = after;
  other.step = 7;
  EXPECT_EQ(store_.Edit(read, other).code(), Code::kConflict) << "it was disabled meanwhile";
  const StoredTag now = *store_.Read("order");
  ChangeMeta(false, WallMs());
  EXPECT_EQ(store_.Edit(now, other).code(), Code::kConflict);
  EXPECT_EQ(store_.Read("order")->tag().step, after.step);
}

TEST_F(TagStoreTest, AnEditFailsIfTheFirstIdsFixTheFormMeanwhile) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  const StoredTag read = *store_.Read("order");
  TagDefinition after = read.tag();
  after.text = "{id:09}";
  MoveLedger("order", 5001);
  EXPECT_EQ(store_.Edit(read, after).code(), Code::kInvalid);
  EXPECT_EQ(store_.Read("order")->tag().text, "");
}

TEST_F(TagStoreTest, ABusyTagCanBeDisabled) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  std::atomic<bool> going_on{true};
  std::thread server([&] {
    MemoryCoordinator memory(tree_);
    BlockingCoordinator registry(memory, clock_);
    EXPECT_TRUE(registry.Connect(Milliseconds(1000)).ok());
    TagStore store(registry);
    while (going_on) {
      const StoredTag stored = *store.Read("order");
      static_cast<void>(store.Lift(stored, stored.tag().high + 1));
    }
  });
  for (int i = 0; i < 20; ++i) {
    const StoredTag read = *store_.Read("order");
    TagDefinition after = read.tag();
    after.disabled = !after.disabled;
    const Status edited = store_.Edit(read, after);
    EXPECT_TRUE(edited.ok()) << edited;
  }
  going_on = false;
  server.join();
}

TEST_F(TagStoreTest, DeletesAnUnusedTagAndFreesItsName) {
  TagDefinition tag = Segment("order");
  tag.text = "A{id}";
  ASSERT_TRUE(store_.Create(tag).ok());
  ASSERT_TRUE(store_.Delete("order").ok());
  EXPECT_EQ(store_.Read("order").code(), Code::kNotFound);
  EXPECT_TRUE(store_.ReadAll()->tags.empty());
  EXPECT_EQ(store_.ReadAll()->deleted, std::vector<std::string>{"order"});
  EXPECT_EQ(store_.Delete("order").code(), Code::kNotFound);
  EXPECT_TRUE(registry_.Read(TagPath("order")).ok()) << "a missing node would mean lost data";

  ASSERT_TRUE(store_.Create({.name = "order", .strategy = "snowflake"}).ok());
  EXPECT_EQ(store_.Read("order")->tag().strategy, "snowflake");
  EXPECT_FALSE(store_.Read("order")->tag().disabled);
  EXPECT_EQ(store_.Create(tag).code(), Code::kConflict);
}

TEST_F(TagStoreTest, DoesNotDeleteATagThatMayHaveIssued) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  MoveLedger("order", 2);
  ASSERT_TRUE(store_.Create({.name = "user", .strategy = "snowflake"}).ok());
  for (const char* name : {"order", "user"}) {
    EXPECT_EQ(store_.Delete(name).code(), Code::kConflict);
    EXPECT_TRUE(store_.Read(name).ok());
  }
  ASSERT_TRUE(store_.Create(Segment("bill")).ok());
  ChangeMeta(true, {});
  EXPECT_EQ(store_.Delete("bill").code(), Code::kConflict) << "nothing is deleted while frozen";
}

// A server takes the first range at any moment, in another thread.
TEST_F(TagStoreTest, EitherTheDeletionOrTheFirstRangeSucceeds) {
  MemoryCoordinator memory(tree_);
  BlockingCoordinator servers(memory, clock_);
  ASSERT_TRUE(servers.Connect(Milliseconds(1000)).ok());
  for (int i = 0; i < 200; ++i) {
    const std::string name = "t" + std::to_string(i);
    ASSERT_TRUE(store_.Create(Segment(name)).ok());
    StoredTag taken = *store_.Read(name);
    taken.node.tag.high = 1001;
    bool used = false;
    std::thread server([&] {
      used =
          servers.Multi({Write::Set(TagPath(name), *WriteTagNode(taken.node), taken.stat.version)})
              .status.ok();
    });
    const Status deleted = store_.Delete(name);
    server.join();
    EXPECT_NE(deleted.ok(), used) << deleted;
    EXPECT_EQ(store_.Read(name).ok(), used);
  }
}

TEST_F(TagStoreTest, RefusesAnEditOfADeletedTag) {
  TagDefinition tag = Segment("order");
  tag.disabled = true;
  ASSERT_TRUE(store_.Create(tag).ok());
  const StoredTag read = *store_.Read("order");
  ASSERT_TRUE(store_.Delete("order").ok());
  tag.step = 7;
  EXPECT_EQ(store_.Edit(read, tag).code(), Code::kNotFound);
  EXPECT_EQ(store_.ReadAll()->deleted.size(), 1u);
}

// The restore names a tag that is deleted in the rolled-back data.
TEST_F(TagStoreTest, ARestoreCanRecreateADeletedTag) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  ASSERT_TRUE(store_.Delete("order").ok());
  ChangeMeta(true, {});
  TagDefinition said = Segment("order");
  said.start = 5001;
  ASSERT_TRUE(store_.Remake(said, *ReadMeta(registry_)).ok());
  EXPECT_EQ(store_.Read("order")->tag().high, 5001);
}

TEST_F(TagStoreTest, AWriteForOneStateOfTheClusterFailsInAnother) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  const StoredTag read = *store_.Read("order");
  ChangeMeta(false, WallMs());
  EXPECT_EQ(store_.Replace(read, read.tag()).code(), Code::kConflict);
}

TEST_F(TagStoreTest, DoesNotChangeAFrozenCluster) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  ChangeMeta(true, WallMs());
  const Status refused = store_.Replace(*store_.Read("order"), Segment("order"));
  EXPECT_EQ(refused.code(), Code::kConflict);
  EXPECT_NE(refused.message().find("a test says so"), std::string::npos);
  EXPECT_EQ(store_.Create(Segment("user")).code(), Code::kConflict);
}

TEST_F(TagStoreTest, ARestoredClusterRequiresAnExplicitStart) {
  ChangeMeta(false, WallMs(1'700'000'000'000));
  EXPECT_EQ(store_.Create(Segment("order")).code(), Code::kInvalid);
  TagDefinition with_start = Segment("order");
  with_start.start = 1;
  EXPECT_TRUE(store_.Create(with_start).ok());
  TagDefinition snowflake;
  snowflake.name = "user";
  snowflake.strategy = "snowflake";
  EXPECT_TRUE(store_.Create(snowflake).ok());
}

// The lost tag has issued ids in this form, with numbers up to its start.
TEST_F(TagStoreTest, ATagCreatedAfterALossHasAFixedForm) {
  ChangeMeta(false, WallMs(1'700'000'000'000));
  TagDefinition made = Segment("made");
  made.start = 5'000;
  ASSERT_TRUE(store_.Create(made).ok());
  ChangeMeta(true, meta_.floor);
  TagDefinition remade = made;
  remade.name = "remade";
  ASSERT_TRUE(store_.Remake(remade, *ReadMeta(registry_)).ok());
  ChangeMeta(false, meta_.floor);
  for (const char* name : {"made", "remade"}) {
    const StoredTag read = *store_.Read(name);
    EXPECT_EQ(read.tag().NextBegin(), 5'000);
    TagDefinition lower = read.tag(), other = read.tag(), longer = read.tag();
    lower.start = 7;
    other.text = "n{id:03}";
    longer.step = 70;
    EXPECT_EQ(store_.Replace(read, lower).code(), Code::kInvalid) << name;
    EXPECT_EQ(store_.Replace(read, other).code(), Code::kInvalid) << name;
    EXPECT_TRUE(store_.Replace(read, longer).ok()) << name;
  }
}

// Servers may have taken ranges of the tag without issuing a number.
TEST_F(TagStoreTest, ALostTagThatRestartsFromOneHasAFixedForm) {
  ChangeMeta(true, WallMs(1'700'000'000'000));
  TagDefinition lost = Segment("lost");
  lost.start = 1;
  ASSERT_TRUE(store_.Remake(lost, *ReadMeta(registry_)).ok());
  ChangeMeta(false, meta_.floor);
  lost.text = "n{id:03}";
  EXPECT_EQ(store_.Edit(*store_.Read("lost"), lost).code(), Code::kInvalid);
  EXPECT_EQ(store_.Read("lost")->tag().NextBegin(), 1);
}

// A start of 1 means that the tag never issued a number.
TEST_F(TagStoreTest, AFreshTagOfARestoredClusterMayStillChangeItsForm) {
  ChangeMeta(false, WallMs(1'700'000'000'000));
  TagDefinition fresh = Segment("fresh");
  fresh.start = 1;
  ASSERT_TRUE(store_.Create(fresh).ok());
  fresh.text = "n{id:03}";
  EXPECT_TRUE(store_.Edit(*store_.Read("fresh"), fresh).ok());
}

TEST_F(TagStoreTest, RaisesALedgerEvenInAFrozenClusterAndNeverLowersIt) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  MoveLedger("order", 5001);
  ChangeMeta(true, WallMs());
  ASSERT_TRUE(store_.Lift(*store_.Read("order"), 9000).ok());
  ASSERT_TRUE(store_.Lift(*store_.Read("order"), 8000).ok());
  EXPECT_EQ(store_.Read("order")->tag().high, 9000);
}

TEST_F(TagStoreTest, ForeignNodesAreNamedAndSkipped) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  Do({Write::Create("/tags/torn", "{\"strategy\":", Lifetime::kPersistent),
      Write::Create("/tags/%zz", "", Lifetime::kPersistent)});
  const TagListing listing = *store_.ReadAll();
  EXPECT_EQ(listing.tags.size(), 1u);
  EXPECT_EQ(listing.faults.size(), 2u);
}

TEST_F(TagStoreTest, ANewTagCannotBeObfuscatedIfPlainIdsMayHaveItsName) {
  ASSERT_TRUE(store_.Create(Segment("order")).ok());
  TagDefinition hidden = Segment("order");
  hidden.plugins = {"obfuscate"};
  hidden.obfuscate_width = 9;
  hidden.obfuscate_key = "k1";
  hidden.obfuscate_check = "c6a13b";
  meta_.default_strategy = "snowflake";
  ChangeMeta(false, WallMs());
  const StoredTag order = *store_.Read("order");
  EXPECT_EQ(store_.Replace(order, hidden).code(), Code::kInvalid);
  EXPECT_EQ(store_.Edit(order, hidden).code(), Code::kInvalid);
  hidden.name = "user";
  EXPECT_EQ(store_.Create(hidden).code(), Code::kInvalid);
}

TEST_F(TagStoreTest, ATagDoesNotStartAmongTheIdsOfUndefinedTags) {
  meta_.default_strategy = "snowflake";
  meta_.ids_since = Layout::Firn().epoch() + Milliseconds(1);
  ChangeMeta(false, WallMs());
  const int64_t first = Layout::Firn().PackUnchecked(0, Tick(1), 0);
  TagDefinition tag = Segment("order");
  tag.start = first + 1;
  const Status refused = store_.Create(tag);
  EXPECT_EQ(refused.code(), Code::kInvalid);
  EXPECT_NE(refused.message().find("undefined tags"), std::string::npos) << refused;
  tag.start = 1;
  ASSERT_TRUE(store_.Create(tag).ok());
  const StoredTag read = *store_.Read("order");
  tag.start = first + 1;
  EXPECT_EQ(store_.Edit(read, tag).code(), Code::kInvalid);
  MoveLedger("order", first);
  tag.start = 1;
  tag.disabled = true;
  EXPECT_TRUE(store_.Edit(*store_.Read("order"), tag).ok()) << "its numbers are used up";
}

}  // namespace
}  // namespace firn
