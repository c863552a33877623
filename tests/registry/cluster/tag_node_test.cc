#include "registry/cluster/tag_node.h"

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fuzz/random_tag.h"

namespace firn {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

Status Refusal(std::string_view data) { return ReadTagNode("order", data).status(); }

TEST(TagNodeTest, IsReadableText) {
  TagDefinition tag{.name = "order", .strategy = "segment"};
  tag.start = 100;
  tag.text = "{id:09}";
  tag.plugins = {"limit", "geo"};
  tag.limit_per_second = 5000;
  tag.options["geo.region"] = "eu";
  tag.high = 2100;
  EXPECT_EQ(*WriteTagNode({tag}),
            R"({"strategy":"segment","disabled":false,"store":"registry","start":100,"step":1000,)"
            R"("step_max":100000000,"hold_minutes":15,"prefetch_at":10,"buffer":"double",)"
            R"("text":"{id:09}","zone":"UTC","plugins":["limit","geo"],"limit.per_second":5000,)"
            R"("limit.burst":0,"geo.region":"eu","high":2100})");
}

TEST(TagNodeTest, ASnowflakeNodeHasNoSegmentMembers) {
  EXPECT_EQ(*WriteTagNode({{.name = "event", .strategy = "snowflake"}}),
            R"({"strategy":"snowflake","disabled":false,"zone":"UTC","plugins":[],"high":0})");
}

TEST(TagNodeTest, ReadsBackAsWritten) {
  const uint64_t seed = 20261121;
  SeededEntropy entropy(seed);
  for (int i = 0; i < 2000; ++i) {
    const TagNode node{RandomTag(entropy), i % 2 == 0 ? "" : R"({"later":{"a":[1,"x"]},"z":null})"};
    const Result<std::string> data = WriteTagNode(node);
    ASSERT_TRUE(data.ok()) << data.status() << " seed " << seed;
    const Result<TagNode> read = ReadTagNode(node.tag.name, *data);
    ASSERT_TRUE(read.ok()) << read.status() << " seed " << seed;
    ASSERT_EQ(*read, node) << *data << " seed " << seed;
  }
}

TEST(TagNodeTest, KeepsMembersOfLaterVersions) {
  Result<TagNode> node =
      ReadTagNode("order", R"({"strategy":"segment","high":7,"quota":{"day":5},"new":[true,1.5]})");
  ASSERT_TRUE(node.ok()) << node.status();
  node->tag.high = 1007;
  EXPECT_THAT(*WriteTagNode(*node),
              HasSubstr(R"("high":1007,"quota":{"day":5},"new":[true,1.5]})"));
}

TEST(TagNodeTest, KeepsTheStandInState) {
  TagNode node{.tag = {.name = "order", .strategy = "segment", .store = "main"}};
  node.tag.when_store_is_away = StoreAway::kLedger;
  node.stand_in = {.store = "main", .picked = 3000, .since = WallMs(1'700'000'000'000)};
  const std::string data = *WriteTagNode(node);
  EXPECT_THAT(data, AllOf(HasSubstr(R"("when_store_is_away":"ledger")"),
                          HasSubstr(R"("stand_in":{"store":"main","picked":3000,)"
                                    R"("since_ms":1700000000000})")));
  EXPECT_EQ(*ReadTagNode("order", data), node);
  for (const char* nonsense : {"7", "{}", R"({"store":"main"})", R"({"store":"","picked":1})",
                               R"({"store":"main","picked":-1})"}) {
    EXPECT_THAT(
        Refusal(R"({"strategy":"segment","high":7,"stand_in":)" + std::string(nonsense) + "}")
            .message(),
        HasSubstr("stand_in: "));
  }
}

TEST(TagNodeTest, KeptMembersNeverReplaceKnownOnes) {
  TagNode node{{.name = "order", .strategy = "segment"}, R"({"high":-5,"strategy":"x"})"};
  node.tag.high = 9;
  EXPECT_EQ(ReadTagNode("order", *WriteTagNode(node))->tag.high, 9);
}

TEST(TagNodeTest, AMissingLedgerIsNotALedgerOfZero) {
  EXPECT_THAT(Refusal(R"({"strategy":"segment"})").message(),
              AllOf(HasSubstr("its node"), HasSubstr("high: missing")));
  EXPECT_THAT(Refusal(R"({"strategy":"segment","high":null})").message(),
              HasSubstr("high: is not a whole number"));
}

TEST(TagNodeTest, NamesEveryFault) {
  EXPECT_THAT(
      Refusal(R"({"strategy":7,"step":"10","disabled":0,"plugins":["a",1],"buffer":"x",)"
              R"("prefetch_at":100,"high":1.5})")
          .message(),
      AllOf(HasSubstr("strategy: must be a string"), HasSubstr("step: is not a whole number"),
            HasSubstr("disabled: must be true or false"), HasSubstr("plugins: must be a string"),
            HasSubstr("buffer: must be double, none or owner"),
            HasSubstr("prefetch_at: 100 is not within"), HasSubstr("high: is not a whole")));
}

TEST(TagNodeTest, InvalidDataIsCorruptWithAReason) {
  const std::pair<std::string, const char*> cases[] = {
      {"", "not valid JSON: error at byte 1"},
      {"{", "not valid JSON"},
      {R"({"strategy":"segment","high":7)", "not valid JSON"},
      {R"({"strategy":"segment","high":7} x)", "not valid JSON"},
      {"[]", "not a JSON object"},
      {"7", "not a JSON object"},
      {"null", "not a JSON object"},
      {std::string("\0", 1), "not valid JSON"},
      {"{\"strategy\":\"seg\xFFment\",\"high\":7}", "not valid JSON"},
      {R"({"strategy":"segment","high":7,"high":1})", "a duplicate member"},
      {R"({"strategy":"segment","high":9223372036854775808})", "high: is not a whole number"},
      {R"({"strategy":"segment","high":-1})", "high: -1 is negative"},
      {R"({"strategy":"segment","high":1e3})", "high: is not a whole number"},
      {R"({"strategy":"segment","high":1e999})", "number that is out of range"},
      {R"({"strategy":"segment","high":7,"step":0})", "step: 0 is not within"},
      {R"({"strategy":"a\u0000b","high":7})", "strategy: not the name"},
      {R"({"strategy":"segment","high":7,"text":"\u001b[2J"})",
       "text: not UTF-8, or has a control"},
      {R"({"strategy":"segment","high":7,"geo.region":"eu"})", "geo.region: requires the plugin"},
      {std::string(kTagNodeBytesMax + 1, ' '), "has 65537 bytes"},
      {std::string(1 << 20, '['), "has 1048576 bytes"},
      {R"({"a":)" + std::string(20, '[') + std::string(20, ']') + "}", "nested deeper"},
      {std::string(60'000, '['), "nested deeper"},
  };
  for (const auto& [data, reason] : cases) {
    const Status status = Refusal(data);
    EXPECT_EQ(status.code(), Code::kCorrupt) << data.substr(0, 80);
    EXPECT_THAT(status.message(), HasSubstr(reason)) << data.substr(0, 80);
  }
}

TEST(TagNodeTest, TheLargestLedgerStaysExact) {
  TagDefinition tag{.name = "order", .strategy = "segment"};
  tag.high = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(ReadTagNode("order", *WriteTagNode({tag}))->tag.high, tag.high);
}

TEST(TagNodeTest, RefusesToWriteInvalidDefinitions) {
  EXPECT_EQ(WriteTagNode({{.name = "order", .strategy = ""}}).code(), Code::kInvalid);
  EXPECT_EQ(WriteTagNode({{.name = "a\n", .strategy = "segment"}}).code(), Code::kInvalid);
  EXPECT_EQ(WriteTagNode({{.name = "a", .strategy = "segment"}, "{"}).code(), Code::kInvalid);
  EXPECT_EQ(WriteTagNode({{.name = "a", .strategy = "segment"},
                          "{\"x\":\"" + std::string(kTagNodeBytesMax - 20, 'x') + "\"}"})
                .code(),
            Code::kInvalid);
}

}  // namespace
}  // namespace firn
