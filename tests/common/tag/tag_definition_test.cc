#include "common/tag/tag_definition.h"

#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/tag/tag_fields.h"
#include "common/tag/tag_form.h"
#include "tests/support/fuzz/random_tag.h"

namespace firn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TagDefinition Segment() { return {.name = "order", .strategy = "segment"}; }
TagDefinition Snowflake() { return {.name = "event", .strategy = "snowflake"}; }
TagDefinition Obfuscated() {
  TagDefinition tag = Segment();
  tag.plugins = {"obfuscate"};
  tag.obfuscate_width = 9;
  tag.obfuscate_key = "k1";
  tag.obfuscate_check = "c6a13b";
  return tag;
}

std::vector<std::string> FaultyFields(const TagDefinition& tag) {
  std::vector<std::string> fields;
  for (const TagFault& fault : FaultsOf(tag)) fields.push_back(fault.field);
  return fields;
}

TEST(TagDefinitionTest, AcceptsTheDefaults) {
  EXPECT_THAT(FaultsOf(Segment()), IsEmpty());
  EXPECT_THAT(FaultsOf(Snowflake()), IsEmpty());
  EXPECT_THAT(FaultsOf(Obfuscated()), IsEmpty());
}

TagDefinition Dated() { return {.name = "invoice", .strategy = "dated"}; }

TEST(TagDefinitionTest, ADatedTagHasAPeriodAndTheRegistry) {
  EXPECT_THAT(FaultsOf(Dated()), IsEmpty());
  const std::pair<const char*, std::function<void(TagDefinition&)>> cases[] = {
      {"store", [](auto& t) { t.store = "mysql"; }},
      {"buffer", [](auto& t) { t.buffer = TagBuffer::kNone; }},
      {"digits", [](auto& t) { t.digits = 11; }},
      {"step", [](auto& t) { t.digits = 3; }},
      {"start", [](auto& t) { t.start = 4711; }},
      {"period_grace", [](auto& t) { t.period_grace = -1; }},
      {"text", [](auto& t) { t.text = "{period}"; }},
  };
  for (const auto& [field, spoil] : cases) {
    TagDefinition tag = Dated();
    spoil(tag);
    EXPECT_THAT(FaultyFields(tag), ElementsAre(field));
  }
  TagDefinition hidden = Obfuscated();
  hidden.strategy = "dated";
  EXPECT_THAT(FaultyFields(hidden), ElementsAre("plugins"));
  TagDefinition plain = Segment();
  plain.digits = 7;
  EXPECT_THAT(FaultyFields(plain), ElementsAre("digits"));
}

TEST(TagDefinitionTest, OnlyTheZoneOfADatedTagMayChangeOnceNumbersAreIssued) {
  TagDefinition before = Dated(), after = Dated();
  before.high = after.high = 20261122000001;
  after.zone = "Europe/Berlin";
  EXPECT_EQ(CheckEdit(before, after), Status());
  EXPECT_EQ(FormOf(before), FormOf(after));
  after.digits = 7;
  EXPECT_THAT(CheckEdit(before, after).message(), HasSubstr("digits: fixed"));
  EXPECT_NE(FormOf(before), FormOf(after));
  TagDefinition other = Segment(), moved = Segment();
  other.high = moved.high = 5;
  moved.zone = "Europe/Berlin";
  EXPECT_FALSE(CheckEdit(other, moved).ok());
}

TEST(TagDefinitionTest, BufferBecomesOwnerOnlyFromNoneAndStaysOwner) {
  const auto edit = [](TagBuffer from, TagBuffer to) {
    TagDefinition before = Segment(), after = Segment();
    before.high = after.high = 5;
    before.buffer = from;
    after.buffer = to;
    EXPECT_EQ(FormOf(before) == FormOf(after),
              (from == TagBuffer::kOwner) == (to == TagBuffer::kOwner));
    return CheckEdit(before, after).message();
  };
  EXPECT_EQ(edit(TagBuffer::kDouble, TagBuffer::kNone), "");
  EXPECT_THAT(edit(TagBuffer::kDouble, TagBuffer::kOwner), HasSubstr("first set buffer=none"));
  EXPECT_EQ(edit(TagBuffer::kNone, TagBuffer::kOwner), "");
  EXPECT_THAT(edit(TagBuffer::kOwner, TagBuffer::kDouble), HasSubstr("buffer: fixed"));
  EXPECT_THAT(edit(TagBuffer::kOwner, TagBuffer::kNone), HasSubstr("buffer: fixed"));
}

// Servers that have not read the edit may still get numbers from a store.
TEST(TagDefinitionTest, ATagGetsAnOwnerOnlyWhileItsStoreIsTheRegistry) {
  for (const auto& [from, to] :
       {std::pair("registry", "main"), std::pair("main", "registry"), std::pair("main", "main")}) {
    TagDefinition before = Segment(), after = Segment();
    before.high = after.high = 5;
    before.buffer = TagBuffer::kNone;
    after.buffer = TagBuffer::kOwner;
    before.store = from;
    after.store = to;
    EXPECT_THAT(CheckEdit(before, after).message(),
                HasSubstr("first set buffer=none store=registry"));
  }
}

TEST(TagDefinitionTest, ATagMayBecomeOneWithAnOwnerAndNotTheReverse) {
  const TagBuffer buffers[] = {TagBuffer::kDouble, TagBuffer::kNone, TagBuffer::kOwner};
  for (const TagBuffer from : buffers) {
    for (const TagBuffer to : buffers) {
      TagDefinition before = Segment(), after = Segment();
      before.buffer = from;
      after.buffer = to;
      after.store = "main";
      EXPECT_EQ(MayBecome(before, after), from != TagBuffer::kOwner || to == TagBuffer::kOwner);
      EXPECT_TRUE(LookAlike(before, after));
      after.text = "n{id}";
      EXPECT_FALSE(MayBecome(before, after) || LookAlike(before, after));
    }
  }
}

TEST(TagDefinitionTest, AcceptsEveryRandomSample) {
  SeededEntropy entropy(1);
  for (int i = 0; i < 2000; ++i) {
    const TagDefinition tag = RandomTag(entropy);
    ASSERT_EQ(CheckTag(tag), Status());
  }
}

TEST(TagDefinitionTest, NamesTheFieldOfEachFault) {
  struct Case {
    const char* field;
    std::function<void(TagDefinition&)> spoil;
  };
  const Case cases[] = {
      {"name", [](auto& t) { t.name = "a\n"; }},
      {"strategy", [](auto& t) { t.strategy = ""; }},
      {"strategy", [](auto& t) { t.strategy = "Segment"; }},
      {"store", [](auto& t) { t.store = "my store"; }},
      {"start", [](auto& t) { t.start = 0; }},
      {"step", [](auto& t) { t.step = 0; }},
      {"step_max", [](auto& t) { t.step_max = t.step - 1; }},
      {"step_max", [](auto& t) { t.step_max = 1'000'000'000'001; }},
      {"hold_minutes", [](auto& t) { t.hold_minutes = 1441; }},
      {"prefetch_at", [](auto& t) { t.prefetch_at = 100; }},
      {"text", [](auto& t) { t.text = std::string(257, 'x'); }},
      {"text", [](auto& t) { t.text = "a\tb"; }},
      {"text", [](auto& t) { t.text = "{date:%d}"; }},
      {"text", [](auto& t) { t.text = "{id:fields}"; }},
      {"zone", [](auto& t) { t.zone = ""; }},
      {"plugins",
       [](auto& t) {
         t.plugins = {"history", "history"};
       }},
      {"plugins", [](auto& t) { t.plugins = {"no good"}; }},
      {"plugins", [](auto& t) { t.plugins.assign(17, "history"); }},
      {"limit.per_second", [](auto& t) { t.plugins = {"limit"}; }},
      {"limit.per_second", [](auto& t) { t.limit_per_second = 5; }},
      {"limit.burst", [](auto& t) { t.limit_burst = 5; }},
      {"obfuscate.width", [](auto& t) { t = Obfuscated(), t.obfuscate_width = 5; }},
      {"obfuscate.width", [](auto& t) { t = Obfuscated(), t.obfuscate_width = 20; }},
      {"obfuscate.key", [](auto& t) { t = Obfuscated(), t.obfuscate_key = ""; }},
      {"obfuscate.key", [](auto& t) { t = Obfuscated(), t.obfuscate_key = "../k"; }},
      {"obfuscate.key", [](auto& t) { t.obfuscate_key = "k1"; }},
      {"obfuscate.check", [](auto& t) { t = Obfuscated(), t.obfuscate_check = ""; }},
      {"obfuscate.check", [](auto& t) { t = Obfuscated(), t.obfuscate_check = "12345"; }},
      {"obfuscate.check", [](auto& t) { t = Obfuscated(), t.obfuscate_check = "12345G"; }},
      {"geo.region", [](auto& t) { t.options["geo.region"] = "eu"; }},
      {"step.up", [](auto& t) { t.plugins = {"geo"}, t.options["step.up"] = "1"; }},
      {"Geo", [](auto& t) { t.options["Geo"] = "eu"; }},
      {"high", [](auto& t) { t.high = -1; }},
      {"when_store_is_away", [](auto& t) { t.when_store_is_away = StoreAway::kLedger; }},
      {"when_store_is_away",
       [](auto& t) {
         t.store = "main";
         t.when_store_is_away = StoreAway::kLedger;
         t.buffer = TagBuffer::kNone;
       }},
  };
  for (const Case& c : cases) {
    TagDefinition tag = Segment();
    c.spoil(tag);
    EXPECT_THAT(FaultyFields(tag), ElementsAre(c.field));
  }
}

TEST(TagDefinitionTest, ASnowflakeTagHasNoSegmentSettings) {
  TagDefinition tag = Snowflake();
  tag.step = 10;
  tag.start = 7;
  tag.buffer = TagBuffer::kNone;
  EXPECT_THAT(FaultyFields(tag), ElementsAre("start", "step", "buffer"));
}

TEST(TagDefinitionTest, OnlyUnobfuscatedSnowflakeIdsHaveFields) {
  TagDefinition shown = Snowflake(), hidden = Obfuscated();
  hidden.strategy = shown.strategy;
  shown.text = hidden.text = "S{id:fields}";
  EXPECT_THAT(FaultyFields(shown), IsEmpty());
  EXPECT_THAT(FaultyFields(hidden), ElementsAre("text"));
}

// `firn restore` accepts such a start for a tag whose period may be used up.
TEST(TagDefinitionTest, ADatedTagMayStartAtTheEndOfAMonthOrYear) {
  TagDefinition tag{.name = "t", .strategy = "dated"};
  for (const int64_t start : {20261231999999, 20261232000000, 20261301000000, 20261232000001}) {
    tag.start = start;
    const bool there = start <= 20261232000000;
    EXPECT_EQ(CheckTag(tag).ok(), there) << start;
  }
}

TEST(TagDefinitionTest, AStrategyOfAUsersOwnMayHaveAnySetting) {
  TagDefinition tag{.name = "t", .strategy = "uuid7"};
  tag.step = 10;
  EXPECT_EQ(CheckTag(tag), Status());
}

TEST(TagDefinitionTest, RefusesAnUnknownFieldAndSuggestsTheNearest) {
  TagDefinition tag = Segment();
  const auto said = [&](std::string_view key) { return SetByKey(key, "7", tag).message(); };
  EXPECT_EQ(said("stpe"), "a tag has no field 'stpe'; did you mean 'step'?");
  EXPECT_EQ(said("when_store_away"),
            "a tag has no field 'when_store_away'; did you mean 'when_store_is_away'?");
  EXPECT_EQ(said("colour"), "a tag has no field 'colour'");
  EXPECT_EQ(tag, Segment());
}

TEST(TagDefinitionTest, ReportsAllFaultsInOneMessage) {
  TagDefinition tag = Segment();
  tag.step = 0;
  tag.prefetch_at = 0;
  tag.plugins = {"limit"};
  const Status status = CheckTag(tag);
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("tag \"order\": "), HasSubstr("step: 0 is not within 1 and"),
                    HasSubstr("prefetch_at: 0 is not"), HasSubstr("limit.per_second: 0 is not")));
}

TEST(TagDefinitionTest, NumbersBeginAboveLedgerAndStart) {
  TagDefinition tag = Segment();
  EXPECT_EQ(tag.NextBegin(), 1);
  tag.start = 100;
  EXPECT_EQ(tag.NextBegin(), 100);
  tag.high = 5000;
  EXPECT_EQ(tag.NextBegin(), 5000);
  tag.start = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(tag.NextBegin(), std::numeric_limits<int64_t>::max());
}

// --- edits --------------------------------------------------------------------------------------

class TagEditTest : public testing::Test {
 protected:
  // Returns the refusal of an edit of a tag whose ledger is at `high`; empty if it is permitted.
  std::string Said(int64_t high, TagDefinition tag, std::function<void(TagDefinition&)> edit) {
    tag.high = high;
    TagDefinition after = tag;
    edit(after);
    const Status status = CheckEdit(tag, after);
    return status.ok() ? "" : status.message();
  }
};

TEST_F(TagEditTest, FixesIdsAndTextOnceAnIdIsIssued) {
  const std::pair<const char*, std::function<void(TagDefinition&)>> edits[] = {
      {"strategy: fixed", [](auto& t) { t.strategy = "other"; }},
      {"text: fixed", [](auto& t) { t.text = "X{id}"; }},
      {"zone: fixed", [](auto& t) { t.zone = "Asia/Tokyo"; }},
      {"obfuscate.width: fixed", [](auto& t) { t.obfuscate_width = 10; }},
      {"obfuscate.key: fixed", [](auto& t) { t.obfuscate_key = "k2"; }},
      {"obfuscate.check: fixed", [](auto& t) { t.obfuscate_check = "000000"; }},
      {"plugins: fixed",
       [](auto& t) {
         t.plugins.clear(), t.obfuscate_width = 0, t.obfuscate_key = t.obfuscate_check = "";
       }},
  };
  for (const auto& [said, edit] : edits) {
    EXPECT_THAT(Said(1, Obfuscated(), edit), HasSubstr(said));
    EXPECT_EQ(Said(0, Obfuscated(), edit), "") << said;
  }
}

TEST_F(TagEditTest, TheFormDiffersForEveryEditThatIsRefusedAfterIssuing) {
  const std::function<void(TagDefinition&)> edits[] = {
      [](auto& t) { t.strategy = "other"; },
      [](auto& t) { t.text = "X{id}"; },
      [](auto& t) { t.zone = "Asia/Tokyo"; },
      [](auto& t) { t.obfuscate_width = 10; },
      [](auto& t) { t.obfuscate_key = "k2"; },
      [](auto& t) { t.obfuscate_check = "000000"; },
      [](auto& t) { t.plugins = {}; },
      [](auto& t) { t.step = 5; },
      [](auto& t) { t.plugins.push_back("rate"); },
      [](auto& t) { t.disabled = true; },
  };
  for (const auto& edit : edits) {
    TagDefinition after = Obfuscated();
    edit(after);
    const bool fixed = Said(1, Obfuscated(), edit).find(": fixed") != std::string::npos;
    EXPECT_EQ(FormOf(after) != FormOf(Obfuscated()), fixed) << FormOf(after);
  }
}

TEST_F(TagEditTest, ASnowflakeTagCountsAsUsedFromItsCreation) {
  EXPECT_THAT(Said(0, Snowflake(), [](auto& t) { t.strategy = "segment"; }),
              HasSubstr("create another tag"));
}

TEST_F(TagEditTest, OtherSettingsMayChangeAtAnyTime) {
  EXPECT_EQ(Said(5000, Segment(),
                 [](auto& t) {
                   t.store = "mysql";
                   t.step = 7;
                   t.start = 6000;
                   t.buffer = TagBuffer::kNone;
                   t.plugins = {"limit", "history"};
                   t.limit_per_second = 10;
                   t.disabled = true;
                 }),
            "");
}

TEST_F(TagEditTest, StartOnlyRaises) {
  TagDefinition tag = Segment();
  tag.start = 100;
  EXPECT_THAT(Said(5000, tag, [](auto& t) { t.start = 4999; }), HasSubstr("start: 4999"));
  EXPECT_EQ(Said(5000, tag, [](auto& t) { t.start = 5000; }), "");
  EXPECT_EQ(Said(5000, tag, [](auto& t) { t.step = 10; }), "") << "an old start is permitted";
}

TEST_F(TagEditTest, RefusesAStartThatLowersTheNextNumber) {
  TagDefinition tag = Segment();
  tag.start = 5001;
  EXPECT_THAT(Said(100, tag, [](auto& t) { t.start = 5000; }), HasSubstr("cannot be lowered"));
  EXPECT_THAT(Said(100, tag, [](auto& t) { t.start.reset(); }), HasSubstr("cannot be lowered"));
  EXPECT_THAT(Said(0, tag, [](auto& t) { t.start.reset(); }), HasSubstr("cannot be lowered"));
  EXPECT_EQ(Said(100, tag, [](auto& t) { t.start = 5002; }), "");
  EXPECT_EQ(Said(5001, tag, [](auto& t) { t.start.reset(); }), "") << "the ledger is as high";
}

TEST_F(TagEditTest, RefusesAnEditOfTheLedger) {
  EXPECT_THAT(Said(5000, Segment(), [](auto& t) { t.high = 4999; }),
              HasSubstr("high: cannot be set"));
  EXPECT_THAT(Said(5000, Segment(), [](auto& t) { t.high = 5001; }),
              HasSubstr("high: cannot be set"));
}

TEST_F(TagEditTest, NamesEveryFaultAtOnce) {
  EXPECT_THAT(Said(1, Segment(),
                   [](auto& t) {
                     t.name = "other";
                     t.text = "{id}";
                     t.step = 0;
                   }),
              AllOf(HasSubstr("name: cannot change"), HasSubstr("text: fixed"),
                    HasSubstr("step: 0 is not within")));
}

}  // namespace
}  // namespace firn
