#include "server/node/kept_tags.h"

#include <atomic>
#include <filesystem>
#include <fstream>
#include <future>
#include <thread>

#include <gtest/gtest.h>

#include "common/log/log.h"
#include "tests/server/node/tag_follower_rig.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class KeptTagsTest : public TagFollowerRig {};

TEST_F(KeptTagsTest, AStartWithoutRegistryUsesTheCachedTags) {
  ASSERT_TRUE(store_.Create(Tag("order", "snowflake")).ok());
  Edit("default", [](TagDefinition& tag) { tag.disabled = true; });
  Pass(Milliseconds(200));
  Start(true);
  EXPECT_NE(Ask("order"), "issued");
  Pass(Milliseconds(1'000));
  EXPECT_EQ(Ask("order"), "issued");
  EXPECT_NE(Ask("default").find("disabled"), std::string::npos);
}

// The control thread renews claims meanwhile: nothing in a tick waits for the disk.
TEST_F(KeptTagsTest, AStalledDiskDelaysTheTagsOfAStartAndNoTick) {
  ASSERT_TRUE(store_.Create(Tag("order", "snowflake")).ok());
  Pass(Milliseconds(200));
  EraseNode("order");
  for (const bool away : {false, true}) {
    memory_.stalls = true;
    Start(away);
    Pass(2 * TagFollower::kPatienceWithSession);
    EXPECT_FALSE(follower_->whole()) << away;
    EXPECT_NE(Ask("default"), "issued") << away;
    memory_.stalls = false;
    Pass(Milliseconds(200));
    EXPECT_EQ(Ask("default"), "issued") << away;
    EXPECT_NE(Ask("order").find("missing from the registry"), std::string::npos) << away;
  }
}

// Such as one with a large --issue_wait_ms, while a slow disk delays the tag.
TEST_F(KeptTagsTest, ACallMayWaitLongForATagThatWasFound) {
  Pass(Milliseconds(200));
  memory_.stalls = true;
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  IssueCall call;
  Begin(call, "order");
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(Go(call), "waits") << i;
    Pass(Milliseconds(50));
  }
  memory_.stalls = false;
  Pass(Milliseconds(200));
  EXPECT_EQ(Go(call), "issued");
}

TEST_F(KeptTagsTest, AProcessThatEndedGetsNoAnswerFromItsDisk) {
  memory_.stalls = true;
  Pass(Milliseconds(200));
  follower_.reset();
  memory_.stalls = false;
  memory_.Work();
  EXPECT_TRUE(memory_.files.empty());
}

TEST_F(KeptTagsTest, AFirstStartWithoutRegistryServesNothing) {
  Start(true);
  Pass(Milliseconds(60'000));
  EXPECT_NE(Ask("default").find("has not read"), std::string::npos);
  EXPECT_FALSE(follower_->whole());
}

TEST_F(KeptTagsTest, CachesATagBeforeServingIt) {
  Pass(Milliseconds(0));  // the cache was read
  memory_.stalls = true;
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("default"), "issued");
  memory_.stalls = false;
  Pass(Milliseconds(0));
  EXPECT_EQ(Ask("default"), "issued");
  memory_.stalls = true;
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Edit("default", [](TagDefinition& tag) { tag.disabled = true; });
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("order"), "issued");
  EXPECT_NE(Ask("default"), "issued") << "a refusal does not wait for the disk";
}

TEST_F(KeptTagsTest, ServesTagsThatCannotBeCached) {
  memory_.broken = true;
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("default"), "issued");
  EXPECT_TRUE(memory_.files.empty());
}

TEST_F(KeptTagsTest, CachesTagsOnceTheDiskWorksAgain) {
  memory_.broken = true;
  Pass(Milliseconds(200));
  memory_.broken = false;
  Pass(Milliseconds(200));
  EXPECT_TRUE(memory_.files.empty()) << "the disk is retried only after a pause";
  Pass(TagFollower::kKeepAgain);
  EXPECT_EQ(Ask("default"), "issued");
  Start(true);
  Pass(Milliseconds(1'000));
  EXPECT_EQ(Ask("default"), "issued") << "without its registry";
}

TEST_F(KeptTagsTest, ServesTagsWhileTheDiskKeepsFailing) {
  memory_.broken = true;
  Pass(Milliseconds(200));
  memory_.stalls = true;
  Pass(2 * TagFollower::kKeepAgain);
  EXPECT_EQ(Ask("default"), "issued");
  memory_.stalls = false;
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
}

TEST_F(KeptTagsTest, ACachedTagMissingInTheRegistryIsLostAndNotUnknown) {
  ASSERT_TRUE(store_.Create(Tag("order", "snowflake")).ok());
  Pass(Milliseconds(200));
  for (int starts = 0; starts < 2; ++starts) {  // the next process must know it, too
    EraseNode(starts == 0 ? "order" : "default");
    Start();
    Pass(Milliseconds(200));
    EXPECT_NE(Ask("order").find("missing from the registry"), std::string::npos);
  }
  ASSERT_TRUE(store_.Create(Tag("order", "snowflake")).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued") << "an operator has created it again";
}

TEST_F(KeptTagsTest, RefusesACachedTagThatReturnsInAnotherForm) {
  Pass(Milliseconds(200));
  EraseNode("default");
  TagDefinition other = Tag("default", "snowflake");
  other.text = "{id:base32}";
  ASSERT_TRUE(store_.Create(other).ok());
  Start();
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("default").find("another form"), std::string::npos);
  Start();
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("default").find("another form"), std::string::npos);
}

// Only a rollback of the registry, or a restore, takes the owner away.
TEST_F(KeptTagsTest, ServesATagThatGotOrLostAnOwner) {
  TagDefinition order = Tag("order", "segment");
  order.high = 101;
  bool restarts = false;
  const auto put = [&](TagBuffer buffer) {
    if (restarts) follower_.reset();
    order.buffer = buffer;
    const Write write =
        Write::Set(TagPath("order"), *WriteTagNode({.tag = order}), Write::kAnyVersion);
    ASSERT_TRUE(operator_.Multi({write}).status.ok());
  };
  for (const bool stopped : {false, true}) {
    restarts = stopped;
    const std::string name = restarts ? "while it is stopped" : "while it runs";
    const auto pass = [&](bool with) {
      if (with) Start();
      Pass(Milliseconds(200));
    };
    EXPECT_TRUE(restarts || store_.Create(Tag("order", "segment")).ok());
    memory_.files.clear();
    put(TagBuffer::kNone);
    pass(true);
    EXPECT_EQ(Ask("order"), "issued") << name;
    put(TagBuffer::kOwner);
    pass(restarts);
    EXPECT_EQ(Ask("order"), "issued") << name;
    for (const TagBuffer without : {TagBuffer::kNone, TagBuffer::kDouble}) {
      put(TagBuffer::kOwner);
      pass(restarts);
      static int logged;
      logged = 0;
      SendLogTo([](const LogEntry& entry) { logged += entry.event == "owner_lost" ? 1 : 0; });
      put(without);
      pass(restarts);
      SendLogTo(nullptr);
      EXPECT_EQ(logged, 1) << name;
      EXPECT_EQ(Ask("order"), "issued") << name;
    }
  }
}

// A server prints this for an operator, even if it has never served the tag.
TEST_F(KeptTagsTest, ReportsALostTagAsItWasKnown) {
  TagDefinition order = Tag("order", "segment");
  order.text = "n{id}";
  ASSERT_TRUE(store_.Create(order).ok());
  Pass(Milliseconds(200));
  EXPECT_TRUE(follower_->unserved()->empty());
  EraseNode("order");
  Start();
  Pass(Milliseconds(200));
  ASSERT_TRUE(follower_->unserved()->contains("order"));
  EXPECT_EQ(follower_->unserved()->at("order").text, "n{id}");
  EXPECT_FALSE(follower_->highest()->contains("order")) << "its ledger was not cached";
  ASSERT_TRUE(store_.Create(order).ok());
  Pass(Milliseconds(200));
  EXPECT_TRUE(follower_->unserved()->empty());
}

TEST_F(KeptTagsTest, KnowsTheDefinitionOfATagThatItHasNeverServed) {
  TagDefinition order = Tag("order", "segment");
  order.disabled = true;
  ASSERT_TRUE(store_.Create(order).ok());
  unservable_ = [](const TagDefinition& tag) { return tag.name == "user"; };
  ASSERT_TRUE(store_.Create(Tag("user", "segment")).ok());
  Pass(Milliseconds(200));
  EXPECT_TRUE(follower_->unserved()->contains("order"));
  EXPECT_TRUE(follower_->unserved()->contains("user"));
  EXPECT_FALSE(follower_->unserved()->contains("default"));
}

TEST_F(KeptTagsTest, RecordsThatTheRegistryHasMoreTagsThanItReads) {
  const std::string data = *WriteTagNode({.tag = Tag("order", "segment")});
  std::vector<Write> writes;
  for (size_t i = 0; i < kListedTagsMax; ++i) {  // besides the tag `default`
    const std::string path = TagPath("tag" + std::to_string(10'000 + i));
    writes.push_back(Write::Create(path, data, Lifetime::kPersistent));
    if (writes.size() < 100) continue;
    ASSERT_TRUE(operator_.Multi(std::exchange(writes, {})).status.ok());
  }
  Pass(Milliseconds(500));
  EXPECT_TRUE(follower_->whole());
  EXPECT_FALSE(follower_->complete());
  EXPECT_FALSE(ParseKnownTags(UuidOf(), memory_.files[UuidOf()])->complete);
  Start(/*away=*/true);
  Pass(Milliseconds(500));
  EXPECT_TRUE(follower_->whole());
  EXPECT_FALSE(follower_->complete()) << "according to the cache";
  Start();
  EraseNode("tag10000");
  Pass(Milliseconds(500));
  EXPECT_TRUE(follower_->complete());
  EXPECT_TRUE(memory_.files[UuidOf()].starts_with("firn tags 2 ")) << "version 0.1.0 reads it";
}

TEST(KeptTagsFile, ALongListIsIncompleteInTheFormatOfEarlierVersions) {
  const std::string uuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";
  KnownTags tags;
  for (size_t i = 1; i < kListedTagsMax; ++i) {
    const std::string name = "tag" + std::to_string(i);
    tags.tags[name].node.tag = {.name = name, .strategy = "segment"};
  }
  EXPECT_TRUE(ParseKnownTags(uuid, FormatKnownTags(uuid, tags))->complete);
  tags.complete = false;
  EXPECT_TRUE(FormatKnownTags(uuid, tags).starts_with("firn tags 3 "));
  EXPECT_FALSE(ParseKnownTags(uuid, FormatKnownTags(uuid, tags))->complete);
  tags.tags["last"].node.tag = {.name = "last", .strategy = "segment"};
  for (const bool complete : {false, true}) {
    tags.complete = complete;
    const std::string text = FormatKnownTags(uuid, tags);
    EXPECT_TRUE(text.starts_with("firn tags 2 "));
    EXPECT_FALSE(ParseKnownTags(uuid, text)->complete);
  }
}

TEST_F(KeptTagsTest, IgnoresCachedTagsOfAnotherCluster) {
  Pass(Milliseconds(200));
  const std::string text = memory_.files.begin()->second;
  EXPECT_TRUE(ParseKnownTags(UuidOf(), text).ok());
  EXPECT_EQ(ParseKnownTags("6f9619ff-8b86-4d11-b42d-00c04fc964ff", text).code(), Code::kCorrupt);
}

TEST_F(KeptTagsTest, IgnoresADamagedCacheFile) {
  ASSERT_TRUE(store_.Create(Tag("Müller & Söhne", "segment")).ok());
  Pass(Milliseconds(200));
  const std::string text = memory_.files.begin()->second;
  for (size_t size = 0; size < text.size(); ++size) {
    EXPECT_FALSE(ParseKnownTags(UuidOf(), text.substr(0, size)).ok()) << size;
  }
  EXPECT_EQ(FormatKnownTags(UuidOf(), *ParseKnownTags(UuidOf(), text)), text);
}

TEST(KeptTagsFile, SurvivesTheProcessAndIsRemovedIfItCannotBeWritten) {
  TempDir dir;
  const std::string uuid = "6f9619ff-8b86-4d11-b42d-00c04fc964ff";
  KnownTags tags{.default_strategy = "snowflake"};
  tags.tags["order"].node.tag = {.name = "order", .strategy = "segment"};
  const auto keep = [&](KeptTags& file) {
    file.SetControl([](const std::function<void()>& task) { task(); });
    std::atomic<bool> done = false;
    Status kept;
    file.Keep(uuid, tags, [&](const Status& outcome) {
      kept = outcome;
      done = true;
    });
    EXPECT_TRUE(Eventually(Milliseconds(30'000), [&] { return done.load(); }));
    return kept;
  };
  const auto read = [&] { return KeptTags::ReadFrom(dir / "server", uuid); };
  {
    KeptTags file(dir / "server");
    EXPECT_EQ(read().code(), Code::kNotFound);
    EXPECT_TRUE(keep(file).ok());
  }
  KeptTags file(dir / "server");
  EXPECT_EQ(*read(), tags);
  // A folder in place of the temporary file: no program can write it, not even as root.
  std::filesystem::create_directory(dir / ("server." + uuid + ".tags.new"));
  std::ofstream(dir / ("server." + uuid + ".tags.new/x")) << "x";
  EXPECT_FALSE(keep(file).ok());
  EXPECT_EQ(read().code(), Code::kNotFound);
}

TEST(KeptTagsFile, IsReadOnAThreadOfItsOwn) {
  TempDir dir;
  KeptTags file(dir / "server");
  std::promise<std::thread::id> read_on;
  std::promise<Code> read;
  file.SetControl([&](const std::function<void()>& task) {
    read_on.set_value(std::this_thread::get_id());
    task();
  });
  file.Read("6f9619ff-8b86-4d11-b42d-00c04fc964ff",
            [&](const Result<KnownTags>& kept) { read.set_value(kept.code()); });
  EXPECT_EQ(read.get_future().get(), Code::kNotFound);
  EXPECT_NE(read_on.get_future().get(), std::this_thread::get_id());
}

}  // namespace
}  // namespace firn
