#include "server/node/tag_follower.h"

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "tests/server/node/tag_follower_rig.h"

namespace firn {
namespace {

class TagFollowerTest : public TagFollowerRig {};

TEST_F(TagFollowerTest, ServesATagAsSoonAsItIsDefined) {
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "unknown");
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
}

TEST_F(TagFollowerTest, RefusesADisabledTagUntilItIsEnabled) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  Edit("order", [](TagDefinition& tag) { tag.disabled = true; });
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("order").find("disabled"), std::string::npos);
  EXPECT_EQ(FaultOf("order"), "disabled");
  Edit("order", [](TagDefinition& tag) { tag.disabled = false; });
  Pass(Milliseconds(200));
  EXPECT_EQ(FaultOf("order"), "");
  EXPECT_EQ(Ask("order"), "issued");
}

TEST_F(TagFollowerTest, RefusesATagWhosePluginIsMissingHere) {
  TagDefinition tag = Tag("order", "snowflake");
  tag.plugins = {"seal"};
  ASSERT_TRUE(store_.Create(tag).ok());
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("order").find("seal"), std::string::npos);
  EXPECT_EQ(FaultOf("order"), "unsupported");
}

TEST_F(TagFollowerTest, ATagWithoutNumbersIsListedAsRefusedWhileItHasNone) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(2'000));
  EXPECT_TRUE(follower_->gives_numbers());
  EXPECT_EQ(FaultOf("order"), "");
  why_not_ = Refusal{Reason::kStoreDown, "the store is down", 0, true};
  Pass(Milliseconds(3'000));
  EXPECT_FALSE(follower_->gives_numbers());
  EXPECT_EQ(FaultOf("order"), "no_numbers");
  EXPECT_EQ(follower_->refused()->at("order").why, "the store is down");
  EXPECT_EQ(FaultOf("default"), "") << "the claim explains it";
  why_not_.reset();
  Pass(Milliseconds(1'500));
  EXPECT_EQ(FaultOf("order"), "");
}

TEST_F(TagFollowerTest, AMovedLedgerIsSeenAndDoesNotRebuildTheTag) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  const int made = made_;
  StoredTag stored = *store_.Read("order");
  stored.node.tag.high = 5001;
  ASSERT_TRUE(
      operator_
          .Multi({Write::Set(TagPath("order"), *WriteTagNode(stored.node), stored.stat.version)})
          .status.ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(made_, made);
  EXPECT_EQ(follower_->highest()->at("order"), 5001);
}

TEST_F(TagFollowerTest, AMissingOrDamagedNodeStopsTheTag) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  ASSERT_TRUE(store_.Create(Tag("user", "segment")).ok());
  Pass(Milliseconds(200));
  ASSERT_TRUE(operator_
                  .Multi({Write::Erase(TagPath("order"), Write::kAnyVersion),
                          Write::Set(TagPath("user"), "{", Write::kAnyVersion)})
                  .status.ok());
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("order").find("missing from the registry"), std::string::npos);
  EXPECT_NE(Ask("user"), "issued");
  EXPECT_EQ(FaultOf("order"), "lost");
  EXPECT_EQ(FaultOf("user"), "unreadable");
}

TEST_F(TagFollowerTest, ADeletedTagIsUnknownAndMayReturnInAnotherForm) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
  ASSERT_TRUE(store_.Delete("order").ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "unknown");
  EXPECT_TRUE(follower_->unserved()->empty());

  ASSERT_TRUE(store_.Create(Tag("order", "snowflake")).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
}

// A call that arrived before the deletion was read has this effect.
TEST_F(TagFollowerTest, ADeletionThatTheLedgerReadsFirstMakesTheTagUnknown) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  ASSERT_TRUE(store_.Delete("order").ok());
  follower_->Redefined("order");
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "unknown");
}

TEST_F(TagFollowerTest, ADeletedTagIsUnknownAfterAStartThatKnewIt) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  ASSERT_TRUE(store_.Delete("order").ok());
  Start();
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "unknown");
}

TEST_F(TagFollowerTest, AUsedTagMarkedAsDeletedIsLost) {
  TagDefinition tag = Tag("order", "segment");
  ASSERT_TRUE(store_.Create(tag).ok());
  ASSERT_TRUE(store_.Delete("order").ok());
  const MemoryTree::Image backup = tree_.Save();
  ASSERT_TRUE(store_.Create(Tag("order", "snowflake")).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
  tree_.Load(backup);
  ASSERT_TRUE(operator_.Connect(Milliseconds(1000)).ok());
  Pass(Milliseconds(2'000));
  EXPECT_NE(Ask("order").find("data were lost"), std::string::npos) << Ask("order");
  EXPECT_TRUE(follower_->unserved()->contains("order"));
}

TEST_F(TagFollowerTest, NoTagIsServedOrUnknownBeforeTheDefinitionsAreRead) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  for (const char* name : {"default", "order", "never heard of"}) {
    EXPECT_NE(Ask(name).find("has not read"), std::string::npos);
  }
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("default"), "issued");
  EXPECT_EQ(Ask("order"), "issued");
  EXPECT_EQ(Ask("never heard of"), "unknown");
  EXPECT_TRUE(follower_->whole());
}

TEST_F(TagFollowerTest, TheDefaultTagCanBeDisabled) {
  Edit("default", [](TagDefinition& tag) { tag.disabled = true; });
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("default").find("disabled"), std::string::npos);
  Edit("default", [](TagDefinition& tag) { tag.disabled = false; });
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("default"), "issued");
}

TEST_F(TagFollowerTest, TheFirstCallFindsATagThatWasJustCreated) {
  Pass(Milliseconds(200));
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  IssueCall call;
  Begin(call, "order");
  EXPECT_EQ(Go(call), "waits");
  std::string answer = "waits";
  for (int rounds = 0; rounds < 8 && answer == "waits"; ++rounds) {
    follower_->Tick(clock_.Boot());  // no time passes, so notifications have no effect
    while (server_.Dispatch(Milliseconds(0)) > 0) {
    }
    memory_.Work();
    answer = Go(call);
  }
  EXPECT_EQ(answer, "issued");
}

TEST_F(TagFollowerTest, AReadingSentBeforeTheCallDoesNotAnswerIt) {
  Pass(Milliseconds(200));
  IssueCall early, late;
  Begin(early, "order");
  EXPECT_EQ(Go(early), "waits");
  follower_->Tick(clock_.Boot());
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Begin(late, "order");
  EXPECT_EQ(Go(late), "waits");
  for (int rounds = 0; rounds < 5; ++rounds) Pass(Milliseconds(0));
  EXPECT_EQ(Go(late), "issued");
}

TEST_F(TagFollowerTest, RequestsForUnknownTagsCostTheRegistryLittle) {
  Pass(Milliseconds(200));
  int waits = 0;
  for (int i = 0; i < 1'000; ++i) {
    const std::string name = "nonsense " + std::to_string(i);
    IssueCall call;
    Begin(call, name);
    const std::string answer = Go(call);
    waits += answer == "waits";
    if (answer == "waits") {
      issuer_->GiveUp(call);
      continue;
    }
    // The tag may have been created a moment ago: the refusal is not final.
    EXPECT_EQ(call.refusal().reason, Reason::kOverloaded) << answer;
    EXPECT_EQ(call.refusal().retry_after_ms, 1'000);
  }
  EXPECT_EQ(waits, NameLookups::kPerSecond);
}

TEST_F(TagFollowerTest, WithoutARegistryNoTagIsUnknown) {
  Pass(Milliseconds(200));
  Start(true);
  Pass(Milliseconds(1'000));
  EXPECT_EQ(Ask("default"), "issued");
  EXPECT_NE(Ask("order").find("cannot check whether tag 'order' exists"), std::string::npos);
}

class LostRootTest : public TagFollowerRig {
 protected:
  LostRootTest() {
    EXPECT_TRUE(store_.Create(Tag("order", "segment")).ok());
    MetaAsRead meta = *ReadMeta(operator_);
    meta.meta.default_strategy = "snowflake";
    EXPECT_TRUE(SetMeta(operator_, meta).ok());
    Start();
    Pass(Milliseconds(200));
    EXPECT_EQ(Ask("order"), "issued");
    uuid_ = UuidOf();
    whole_ = tree_.Save();
  }

  void LoadTree(const MemoryTree::Image& image) {
    tree_.Load(image);
    ASSERT_TRUE(operator_.Connect(Milliseconds(1000)).ok());
    Pass(Milliseconds(3'000));
  }

  // Checks rule 5a, for any fault of the root node.
  void ExpectPlainTagsOnly(const std::string& why) {
    EXPECT_EQ(Ask("default"), "issued");
    EXPECT_NE(Ask("order").find(why), std::string::npos) << Ask("order");
    EXPECT_NE(Ask("never heard of").find(why), std::string::npos) << Ask("never heard of");
    const auto refused = follower_->refused();
    EXPECT_EQ(FaultOf("order"), "no_root");
    EXPECT_FALSE(refused->contains("default"));
    EXPECT_TRUE(follower_->unserved()->contains("order"));
    EXPECT_EQ(memory_.files[uuid_].find(" lost "), std::string::npos) << memory_.files[uuid_];
  }

  void ExpectAllServed() {
    EXPECT_EQ(Ask("default"), "issued");
    EXPECT_EQ(Ask("order"), "issued");
    EXPECT_EQ(Ask("never heard of"), "issued");
    EXPECT_TRUE(follower_->refused()->empty());
    EXPECT_TRUE(follower_->unserved()->empty());
  }

  std::string uuid_;
  MemoryTree::Image whole_;
};

TEST_F(LostRootTest, ServesPlainTagsWhileTheRegistryIsEmpty) {
  LoadTree({});
  ExpectPlainTagsOnly("no root node");
  LoadTree(whole_);
  ExpectAllServed();
}

TEST_F(LostRootTest, IgnoresDefinitionsOfAnotherCluster) {
  MemoryTree other(clock_);
  MemoryCoordinator memory(other);
  BlockingCoordinator registry(memory, clock_);
  ASSERT_TRUE(registry.Connect(Milliseconds(1000)).ok());
  ASSERT_TRUE(MakeCluster(registry, {}, entropy_).ok());
  ASSERT_TRUE(TagStore(registry).Create(Tag("foreign", "snowflake")).ok());
  LoadTree(other.Save());
  ExpectPlainTagsOnly("another cluster");
  EXPECT_NE(Ask("foreign"), "issued");
  LoadTree(whole_);
  ExpectAllServed();
}

TEST_F(LostRootTest, IgnoresDefinitionsUnderAnOlderRoot) {
  MetaAsRead meta = *ReadMeta(operator_);
  meta.meta.reason = "edited since";
  ASSERT_TRUE(SetMeta(operator_, meta).ok());
  Pass(Milliseconds(500));
  LoadTree(whole_);
  ExpectPlainTagsOnly("older");
}

TEST_F(LostRootTest, KeepsDefinitionsWhileTheClusterIsFrozen) {
  MetaAsRead meta = *ReadMeta(operator_);
  meta.meta.frozen = true;
  ASSERT_TRUE(SetMeta(operator_, meta).ok());
  Pass(Milliseconds(500));
  EraseNode("default");
  Pass(Milliseconds(3'000));
  EXPECT_EQ(Ask("default"), "issued");
  EXPECT_NE(Ask("never heard of").find("frozen"), std::string::npos);
}

TEST_F(LostRootTest, ServesCachedPlainTagsAfterAStartWithAnEmptyRegistry) {
  tree_.Wipe();
  follower_.reset();
  issuer_ = std::make_unique<Issuer>(deaf_);
  follower_ =
      std::make_unique<TagFollower>(server_, entropy_, catalogue_, *issuer_, uuid_, &memory_);
  issuer_->SetSeeker(follower_->seeker());
  Pass(Milliseconds(7'000));
  ExpectPlainTagsOnly("no root node");
}

TEST_F(LostRootTest, RefusesATagThatIsMissingUnderAnIntactRoot) {
  EraseNode("default");
  Pass(Milliseconds(3'000));
  EXPECT_NE(Ask("default").find("missing from the registry"), std::string::npos) << Ask("default");
  EXPECT_EQ(follower_->refused()->at("default").reason, Reason::kInternal);
}

TEST_F(TagFollowerTest, ServesUndefinedTagsIfTheClusterPermitsThem) {
  MetaAsRead meta = *ReadMeta(operator_);
  meta.meta.default_strategy = "snowflake";
  ASSERT_TRUE(SetMeta(operator_, meta).ok());
  EXPECT_NE(Ask("order"), "issued") << "nothing is issued before the definitions are read";
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
  Start(true);
  EXPECT_NE(Ask("order"), "issued");
  Pass(Milliseconds(1'000));
  EXPECT_EQ(Ask("order"), "issued") << "by the cached definitions";
}

TEST_F(TagFollowerTest, LedgersAreKeptOnceAMinuteAndRememberedAtAStart) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  const auto kept = [this] {
    const std::string& text = memory_.files.at(UuidOf());
    const TagNode node = ParseKnownTags(UuidOf(), text)->tags.at("order").node;
    return std::pair(node.tag.high, node.returned);
  };
  SetLedger("order", 5001, 0);
  Pass(Milliseconds(200));
  Pass(TagFollower::kKeepLedgersEvery);
  EXPECT_EQ(kept(), std::pair(int64_t{5001}, int64_t{0}));
  SetLedger("order", 4001, 1000);
  Pass(Milliseconds(200));
  EXPECT_EQ(kept(), std::pair(int64_t{5001}, int64_t{0})) << "not yet";
  while (!follower_->KeptLedgers()) Pass(Milliseconds(50));
  EXPECT_EQ(kept(), std::pair(int64_t{4001}, int64_t{1000})) << "at a clean stop";

  Start();
  std::map<std::string, uint64_t> remembered;
  follower_->OnRemembered(
      [&](const std::string& tag, const TagNode& node) { remembered[tag] = node.ledger_sum(); });
  Pass(Milliseconds(200));
  EXPECT_EQ(remembered, (std::map<std::string, uint64_t>{{"order", 5001}}));
}

// `firn restore` must not learn a lower ledger from a server that has just read the registry.
TEST_F(TagFollowerTest, ReportsTheCachedLedgerIfTheRegistryWasPutBackWhileTheServerWasStopped) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  SetLedger("order", 5001, 0);
  Pass(Milliseconds(200));
  while (!follower_->KeptLedgers()) Pass(Milliseconds(50));
  follower_.reset();
  SetLedger("order", 4001, 0);
  Start();
  for (int round = 0; round < 20; ++round) {
    Pass(Milliseconds(0));
    EXPECT_FALSE(follower_->highest()->contains("order") &&
                 follower_->highest()->at("order") < 5001);
  }
  EXPECT_TRUE(follower_->highest()->contains("order"));
}

TEST_F(TagFollowerTest, ATagDeletedWhileTheServerWasStoppedIsNotReportedAsMissing) {
  ASSERT_TRUE(store_.Create(Tag("unused", "segment")).ok());
  Pass(Milliseconds(200));
  while (!follower_->KeptLedgers()) Pass(Milliseconds(50));
  follower_.reset();
  ASSERT_TRUE(store_.Delete("unused").ok());
  Start();
  std::set<std::string> remembered, missing;
  follower_->OnRemembered([&](const std::string& tag, const TagNode&) { remembered.insert(tag); });
  follower_->OnSeen([&](const std::string& tag, const std::optional<TagNode>& node) {
    if (!node) missing.insert(tag);
  });
  Pass(Milliseconds(500));
  EXPECT_TRUE(remembered.empty());
  EXPECT_TRUE(missing.empty());
  EXPECT_FALSE(follower_->unserved()->contains("unused"));
}

}  // namespace
}  // namespace firn
