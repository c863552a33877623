// Edits of served tags into definitions that the server cannot serve.

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/node/segment_tags.h"
#include "tests/server/node/tag_follower_rig.h"

namespace firn {
namespace {

class TagEditsTest : public TagFollowerRig {};

TEST_F(TagEditsTest, KeepsTheEarlierDefinitionAfterAnEditOfRangesThatItCannotServe) {
  unservable_ = [](const TagDefinition& tag) { return tag.buffer == TagBuffer::kNone; };
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  const int made = made_;
  Edit("order", [](TagDefinition& tag) { tag.buffer = TagBuffer::kNone; });
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
  EXPECT_EQ(FaultOf("order"), "");
  EXPECT_EQ(*follower_->outdated(), (OutdatedTags{{"order", why_unservable_.message()}}));
  Edit("order", [](TagDefinition& tag) { tag.step = 7; });
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued") << "its definition still differs in nothing else";
  EXPECT_EQ(made_, made);
  Edit("order", [](TagDefinition& tag) { tag.buffer = TagBuffer::kDouble; });
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
  EXPECT_GT(made_, made);
  EXPECT_TRUE(follower_->outdated()->empty());
}

TEST_F(TagEditsTest, RefusesATagAfterAnEditThatItCannotServe) {
  const std::vector<std::function<void(TagDefinition&)>> edits{
      [](TagDefinition& tag) { tag.store = "main"; },
      [](TagDefinition& tag) { tag.start = 5'000; },
      [](TagDefinition& tag) { tag.plugins = {"seal"}; },
      [](TagDefinition& tag) { tag.period_grace = 5; },
      [](TagDefinition& tag) { tag.store = "main", tag.when_store_is_away = StoreAway::kLedger; },
      [](TagDefinition& tag) { tag.start = 9'000, tag.step = 7; }};
  for (size_t i = 0; i < edits.size(); ++i) {
    const std::string name = "t" + std::to_string(i);
    unservable_ = nullptr;
    ASSERT_TRUE(store_.Create(Tag(name, i == 3 ? "dated" : "segment")).ok());
    Pass(Milliseconds(200));
    ASSERT_EQ(Ask(name), "issued");
    unservable_ = [](const TagDefinition&) { return true; };
    Edit(name, edits[i]);
    Pass(Milliseconds(200));
    EXPECT_EQ(FaultOf(name), "unsupported");
    EXPECT_NE(Ask(name), "issued");
  }
  EXPECT_TRUE(follower_->outdated()->empty());
}

TEST_F(TagEditsTest, RefusesATagThatItHasNeverServedAndCannotServe) {
  unservable_ = [](const TagDefinition& tag) { return tag.buffer == TagBuffer::kNone; };
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  Edit("order", [](TagDefinition& tag) { tag.buffer = TagBuffer::kNone; });
  Pass(Milliseconds(200));
  ASSERT_EQ(Ask("order"), "issued");
  Start();
  Pass(Milliseconds(200));
  EXPECT_EQ(FaultOf("order"), "unsupported");
}

TEST_F(TagEditsTest, AnotherServerMayHelpUnlessTheDefinitionContradictsItsStore) {
  unservable_ = [](const TagDefinition& tag) { return tag.HasLedger(); };
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("order"), "issued");
  EXPECT_FALSE(another_may_help_);
  why_unservable_ = NotFound("this server has no store 'main'");
  ASSERT_TRUE(store_.Create(Tag("user", "segment")).ok());
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("user"), "issued");
  EXPECT_TRUE(another_may_help_);
}

// Readings close what serves the tag before the edit is cached and served.
TEST_F(TagEditsTest, ServesATagWhoseFormIsTakenBackWhileItIsCached) {
  std::vector<std::function<void()>> tasks;
  SegmentTags segments(
      server_, [&](std::function<void()> task) { tasks.push_back(std::move(task)); }, clock_,
      entropy_);
  Catalogue catalogue;
  const auto make = [&](const TagDefinition& tag) { return segments.Make(tag); };
  ASSERT_TRUE(catalogue.AddStrategy("segment", make).ok());
  issuer_ = std::make_unique<Issuer>(deaf_);
  follower_ =
      std::make_unique<TagFollower>(server_, entropy_, catalogue, *issuer_, UuidOf(), &memory_);
  follower_->OnSeen(
      [&](const std::string& tag, const std::optional<TagNode>& node) { segments.Saw(tag, node); });
  segments.OnRedefined([&](const std::string& tag) { follower_->Redefined(tag); });
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  memory_.stalls = true;
  Edit("order", [](TagDefinition& tag) { tag.text = "n{id:09}"; });
  Pass(Milliseconds(200));
  Edit("order", [](TagDefinition& tag) { tag.text = ""; });
  Pass(Milliseconds(200));
  memory_.stalls = false;
  std::string answer;
  for (int i = 0; i < 100 && answer != "issued"; ++i) {
    Pass(Milliseconds(0));
    segments.Tick(clock_.Boot());
    for (const auto& task : std::exchange(tasks, {})) task();
    answer = Ask("order");
  }
  EXPECT_EQ(answer, "issued");
  follower_.reset();
  issuer_.reset();
}

}  // namespace
}  // namespace firn
