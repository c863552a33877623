#include "tools/firn/tags_import.h"

#include <gmock/gmock.h>

namespace firn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(TagsImportTest, ContinuesLeafAtMaxIdAndTinyidAboveIt) {
  const std::vector<IdSource> source{{"db", {{"order", "1001", "50"}}}};
  for (const auto& [form, next] : {std::pair(IdTable::kLeaf, 1001), {IdTable::kTinyid, 1002}}) {
    const TagImport import = PlanImport(form, source, "main");
    ASSERT_THAT(import.tags, SizeIs(1));
    EXPECT_EQ(import.tags[0].high, next);
    EXPECT_EQ(import.tags[0].start, next);
    EXPECT_EQ(import.tags[0].step, 50);
    EXPECT_EQ(import.tags[0].store, "main");
    EXPECT_EQ(import.tags[0].strategy, "segment");
  }
}

TEST(TagsImportTest, ContinuesATagOfSeveralDatabasesAboveAllOfThem) {
  const TagImport import = PlanImport(
      IdTable::kTinyid,
      {{"a", {{"order", "1000", "100", "2", "0"}}}, {"b", {{"order", "5000", "200", "2", "1"}}}},
      "registry");
  EXPECT_THAT(import.faults, IsEmpty());
  ASSERT_THAT(import.tags, SizeIs(1));
  EXPECT_EQ(import.tags[0].high, 5001);
  EXPECT_EQ(import.tags[0].step, 200);
}

TEST(TagsImportTest, ReportsInvalidRowsAsFaultsWithoutATag) {
  const TagImport import =
      PlanImport(IdTable::kTinyid,
                 {{"a",
                   {{"alone", "1", "10", "2", "0"},
                    {"mixed", "1", "10", "2", "0"},
                    {"same", "1", "10", "2", "0"},
                    {"negative", "-1", "10"},
                    {"null", "NULL", "10"},
                    {"step", "1", "0"},
                    {"huge", "9223372036854775807", "1"},
                    {"bad\nname", "1", "1"},
                    {"good", "0", "10"}}},
                  {"b", {{"mixed", "1", "10", "3", "1"}, {"same", "1", "10", "2", "2"}}}},
                 "registry");
  ASSERT_THAT(import.tags, SizeIs(1));
  EXPECT_EQ(import.tags[0].name, "good");
  EXPECT_EQ(import.tags[0].high, 1);
  EXPECT_THAT(
      import.faults,
      ElementsAre(HasSubstr("'alone': delta is 2, but only 1 of the databases"),
                  HasSubstr("bad\\x0aname"), HasSubstr("'huge': a: max_id: '9223"),
                  HasSubstr("'mixed': b: delta is 3 here and 2 elsewhere"),
                  HasSubstr("'negative': a: max_id: '-1'"), HasSubstr("'null': a: max_id: 'NULL'"),
                  HasSubstr("'same': delta is 2, but only 1"), HasSubstr("'step': a: step: '0'")));
}

TEST(TagsImportTest, RaisesAnExistingTagWithoutOtherChanges) {
  TagDefinition there{.name = "order", .strategy = "segment"};
  there.step = 7;
  there.high = 100;
  TagDefinition wanted{.name = "order", .strategy = "segment", .store = "main"};
  wanted.high = 500;
  wanted.start = 500;
  TagDefinition fresh = wanted;
  fresh.name = "user";
  const auto raised = RaiseTags({there}, {wanted, fresh});
  ASSERT_THAT(raised, SizeIs(2));
  EXPECT_EQ(raised[0].step, 7);
  EXPECT_EQ(raised[0].store, "registry");
  EXPECT_EQ(raised[0].NextBegin(), 500);
  EXPECT_EQ(raised[0].high, 500);
  EXPECT_EQ(raised[1], fresh);
  there.high = 900;
  EXPECT_EQ(RaiseTags({there}, {wanted})[0], there);
}

TEST(IdDatabaseTest, ParsesAnAddressAndADatabase) {
  const auto place = IdDatabase::Parse("db.example:3306/ids");
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place.value_or({}).ToString(), "db.example:3306/ids");
  for (const char* bad : {"", "db.example:3306", "db.example/ids", "db.example:3306/", ":1/a"}) {
    EXPECT_EQ(IdDatabase::Parse(bad).code(), Code::kInvalid) << bad;
  }
}

}  // namespace
}  // namespace firn
