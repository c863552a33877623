// Edits of served tags into definitions that the server cannot serve.

#include <functional>
#include <string>
#include <vector>

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
  why_unservable_ = NotFound("there is no store 'main' here");
  ASSERT_TRUE(store_.Create(Tag("user", "segment")).ok());
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("user"), "issued");
  EXPECT_TRUE(another_may_help_);
}

}  // namespace
}  // namespace firn
