#include "registry/cluster/first_use.h"

#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "registry/cluster/cluster_settings.h"
#include "tests/server/node/tag_follower_rig.h"

namespace firn {
namespace {

// A cluster in which undefined names become counters at their first use.
class FirstUseTest : public TagFollowerRig {
 protected:
  FirstUseTest() {
    Set({});
    Pass(NameLookups::kNotCreatedFor + Milliseconds(200));
  }
  void Set(CounterSetting counters) {
    const Nonce era = ReadMeta(operator_)->meta.era;
    counters.era = era;
    const auto change = [&](ClusterSettings& settings) { settings.counters = counters; };
    EXPECT_TRUE(ChangeSettings(operator_, era, change).ok());
  }
  // A call by a client with or without the right to create tags.
  std::string Use(const std::string& name, bool may_create = true) {
    IssueCall call(Request{.tag = name, .may_create = may_create});
    std::string answer = Go(call);
    for (int i = 0; i < 20 && answer == "waits"; ++i) {
      Pass(Milliseconds(0));
      answer = Go(call);
    }
    return answer == "unknown" ? call.refusal().message : answer;
  }
  int64_t Created() { return *ReadCountersCreated(operator_.Read(kCountersPath)); }
};

TEST_F(FirstUseTest, CreatesATagWhoseNumbersRise) {
  EXPECT_EQ(Use("user:42"), "issued");
  EXPECT_EQ(Use("user:42"), "issued");
  EXPECT_EQ(Created(), 1);
  const TagDefinition tag = store_.Read("user:42")->tag();
  EXPECT_EQ(tag.strategy, "segment");
  EXPECT_EQ(tag.buffer, TagBuffer::kOwner);
  EXPECT_EQ(tag.NextBegin(), 1);
  EXPECT_FALSE(tag.MayHaveIssued());
}

TEST_F(FirstUseTest, CreatesOnlyNamesWithThePrefixes) {
  Set({.start = 700, .prefixes = "order:,user:"});
  EXPECT_EQ(Use("cart:1"), "no tag 'cart:1'");
  EXPECT_EQ(Use("user:1"), "issued");
  const TagDefinition tag = store_.Read("user:1")->tag();
  EXPECT_EQ(tag.NextBegin(), 700);
  EXPECT_TRUE(tag.MayHaveIssued()) << "its form is fixed";
}

TEST_F(FirstUseTest, CreatesNothingForAClientWithoutTheRight) {
  EXPECT_NE(Use("a", false).find("no right to create it"), std::string::npos);
  EXPECT_EQ(Created(), 0);
  EXPECT_EQ(Use("a"), "issued");
  EXPECT_EQ(Use("a", false), "issued");
}

// Servers that remember what the registry has lost freeze the cluster meanwhile.
TEST_F(FirstUseTest, CreatesNothingAtTheBeginningOfASession) {
  Start();
  Pass(Milliseconds(200));
  EXPECT_NE(Use("a").find("neither looked up nor created at this moment"), std::string::npos);
  Pass(NameLookups::kNotCreatedFor);
  EXPECT_EQ(Use("a"), "issued");
}

TEST_F(FirstUseTest, CreatesNoTagThatIsLost) {
  EXPECT_EQ(Use("a"), "issued");
  EraseNode("a");
  Pass(Milliseconds(1'000));
  EXPECT_NE(Use("a"), "issued");
  EXPECT_EQ(operator_.Read(TagPath("a")).code(), Code::kNotFound);
}

TEST_F(FirstUseTest, CreatesNothingAfterTheSettingHasEnded) {
  const auto off = [](ClusterSettings& settings) { settings.counters.reset(); };
  ASSERT_TRUE(ChangeSettings(operator_, ReadMeta(operator_)->meta.era, off).ok());
  EXPECT_EQ(Use("a"), "no tag 'a'");
}

// Counters that were lost with the data may have issued numbers.
TEST_F(FirstUseTest, CreatesNothingInDataOfALaterEra) {
  EXPECT_EQ(Use("a"), "issued");
  MetaAsRead root = *ReadMeta(operator_);
  ASSERT_TRUE(BeginEra(operator_, root.meta, root.version, entropy_).ok());
  Pass(Milliseconds(200));
  EXPECT_NE(Use("b").find("firn set default_strategy=counter counter_start=N"), std::string::npos);
  EXPECT_EQ(Use("a"), "issued");
}

TEST_F(FirstUseTest, CreatesNothingWhileTheClusterIsFrozen) {
  MetaAsRead root = *ReadMeta(operator_);
  root.meta.frozen = true;
  root.meta.reason = "a test";
  ASSERT_TRUE(SetMeta(operator_, root).ok());
  EXPECT_NE(Use("a"), "issued");
  EXPECT_EQ(operator_.Read(TagPath("a")).code(), Code::kNotFound);
}

TEST_F(FirstUseTest, CreatesADeletedTagAgain) {
  ASSERT_TRUE(store_.Create(Tag("a", "segment")).ok());
  ASSERT_TRUE(store_.Delete("a").ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Use("a"), "issued");
  EXPECT_EQ(store_.Read("a")->tag().buffer, TagBuffer::kOwner);
}

TEST_F(FirstUseTest, LeavesADisabledTagAlone) {
  TagDefinition tag = Tag("a", "segment");
  tag.disabled = true;
  ASSERT_TRUE(store_.Create(tag).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Use("a"), "tag 'a': the tag is disabled");
}

TEST_F(FirstUseTest, CreatesNoTagAboveTheMaximum) {
  const std::string full = R"({"created":4999})";
  ASSERT_TRUE(
      operator_.Multi({Write::Create(kCountersPath, full, Lifetime::kPersistent)}).status.ok());
  EXPECT_EQ(Use("a"), "issued");
  EXPECT_EQ(Created(), kCountersMax);
  EXPECT_NE(Use("b").find("no more tags can be created by their first use"), std::string::npos);
  EXPECT_EQ(Use("a"), "issued");
}

TEST_F(FirstUseTest, CreatesAtMostTenTagsASecond) {
  constexpr int kNames = NameLookups::kCreatedPerSecond + 2;
  Pass(Milliseconds(1'100));
  std::deque<std::string> names;
  std::deque<IssueCall> calls;
  for (int i = 0; i < kNames; ++i) {
    names.push_back("n" + std::to_string(i));
    calls.emplace_back(Request{.tag = names.back(), .may_create = true});
    EXPECT_EQ(Go(calls.back()), "waits");
  }
  Pass(Milliseconds(3'000));  // one after the other
  int issued = 0;
  for (IssueCall& call : calls) issued += Go(call) == "issued" ? 1 : 0;
  EXPECT_EQ(issued, NameLookups::kCreatedPerSecond);
  Pass(Milliseconds(1'100));
  for (const std::string& name : names) EXPECT_EQ(Use(name), "issued");
}

// Another server creates the tag between this one's reading and its write.
TEST_F(FirstUseTest, UsesTheTagThatAnotherServerHasCreated) {
  IssueCall call(Request{.tag = "a", .may_create = true});
  EXPECT_EQ(Go(call), "waits");
  TagDefinition tag = Tag("a", "segment");
  tag.buffer = TagBuffer::kOwner;
  ASSERT_TRUE(store_.Create(tag).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Go(call), "issued");
  EXPECT_EQ(Created(), 0);
}

}  // namespace
}  // namespace firn
