#include "common/json/json.h"

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/json/json_object.h"

namespace firn {
namespace {

std::string Nested(int lists) {
  const auto deep = static_cast<size_t>(lists);
  return "{\"a\":" + std::string(deep, '[') + std::string(deep, ']') + "}";
}

// --- documents -----------------------------------------------------------------------------------

TEST(JsonTest, ReadsAndWritesOneObjectInItsOrder) {
  const std::string text = R"({"b":1,"a":{"d":[true,null,1.5],"c":"\u00e9"}})";
  EXPECT_EQ(JsonText(ParseJson(text, text.size()).value()),
            "{\"b\":1,\"a\":{\"d\":[true,null,1.5],\"c\":\"\xc3\xa9\"}}");
  EXPECT_EQ(JsonText(ParseJson(" {\"a\":1}\n", 100).value(), 2), "{\n  \"a\": 1\n}");
}

TEST(JsonTest, RefusesAnythingButOneObjectWithAReason) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "is not valid JSON: error at byte 1"},
      {"{", "is not valid JSON: error at byte 2"},
      {"{\"a\":1} x", "is not valid JSON: error at byte 9"},
      {"{\"a\":1}{}", "is not valid JSON: error at byte 8"},
      {"{\"a\":1,}", "is not valid JSON: error at byte 8"},
      {"{\"a\":\"\n\"}", "is not valid JSON: error at byte 7"},
      {"{\"a\":\"\xff\"}", "is not valid JSON: error at byte 7"},
      {"{\"a\":1e999}", "has a number that is out of range"},
      {"[]", "is not a JSON object"},
      {"7", "is not a JSON object"},
      {"null", "is not a JSON object"},
      {std::string(101, ' '), "has 101 bytes, more than 100"},
  };
  for (const auto& [text, reason] : cases) {
    EXPECT_EQ(ParseJson(text, 100).status(), Corrupt(reason)) << text;
  }
}

TEST(JsonTest, RefusesDuplicateMembersAtAnyDepth) {
  for (const char* text : {R"({"a":1,"a":1})", R"({"a":1,"b":2,"a":[]})", R"({"a":{"b":1,"b":2}})",
                           R"({"a":[{},{"b":{"c":1,"d":1,"c":1}}]})"}) {
    EXPECT_EQ(ParseJson(text, 100).status(), Corrupt("has a duplicate member")) << text;
  }
  EXPECT_TRUE(ParseJson(R"({"a":{"a":[{"a":1},{"a":1}],"b":1},"b":1})", 100).ok());
}

TEST(JsonTest, RefusesTooDeepNesting) {
  EXPECT_TRUE(ParseJson(Nested(8), 100).ok());
  EXPECT_EQ(ParseJson(Nested(9), 100).status(), Corrupt("is nested deeper than 8"));
  EXPECT_EQ(ParseJson(Nested(50'000), 1 << 20).status(), Corrupt("is nested deeper than 8"));
}

// The text after the first value beyond the limit is not JSON. The reason of the refusal shows that
// it was not parsed.
TEST(JsonTest, ParsingStopsAtTheFirstValueBeyondTheLimit) {
  const struct {
    const char* text;
    size_t values;
  } cases[] = {{R"({"a":1,"b":2,"c":3} junk)", 3},
               {R"({"a":[1,2]} junk)", 3},
               {R"({"a":[{},{},{}]} junk)", 4},
               {R"({"a":{"b":{"c":[]}}} junk)", 3}};
  for (const auto& [text, values] : cases) {
    EXPECT_EQ(ParseJson(text, 100, values - 1).status(),
              Corrupt("has more than " + std::to_string(values - 1) + " values"))
        << text;
    EXPECT_NE(ParseJson(text, 100, values).status().message().find("is not valid JSON"),
              std::string::npos)
        << text;
  }
}

TEST(JsonTest, ReadsAsManyValuesAsTheLimitPermits) {
  std::string members, objects;
  for (size_t i = 0; i < kJsonValuesMax; ++i) members += "\"m" + std::to_string(i) + "\":0,";
  members.back() = '}';
  const Result<Json> read = ParseJson("{" + members, 1 << 20);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->size(), kJsonValuesMax);
  EXPECT_EQ(ParseJson("{\"more\":0," + members, 1 << 20).status(),
            Corrupt("has more than 512 values"));
  constexpr size_t kMany = 100'000;
  for (size_t i = 0; i < kMany; ++i) objects += "{\"a\":0},";
  objects.back() = ']';
  const Result<Json> list = ParseJson("{\"list\":[" + objects + "}", 2 << 20, 1 << 20);
  ASSERT_TRUE(list.ok()) << list.status();
  EXPECT_EQ(list->at("list").size(), kMany);
}

TEST(JsonTest, WholeNumbersHave63BitsAndASign) {
  EXPECT_EQ(Json(INT64_MIN).whole(), INT64_MIN);
  EXPECT_EQ(Json(uint64_t{INT64_MAX}).whole(), INT64_MAX);
  for (const Json& other : {Json(uint64_t{1} << 63), Json(1.0), Json("1"), Json(true), Json()}) {
    EXPECT_EQ(other.whole(), std::nullopt) << other;
  }
}

TEST(JsonTest, WritesATextLikeADocument) {
  for (const std::string text : {"", "plain", "a \"b\" \\", "\n\x7f", "\xc3\xa9", "a\xff"}) {
    std::string out = "x";
    AppendJsonText(out, text);
    EXPECT_EQ(out, "x" + JsonText(text));
  }
  EXPECT_EQ(JsonText({{"a\tb", std::string("\0\xed\xa0\x80z\xc3", 6)}}),
            "{\"a\\tb\":\"\\u0000\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\"}");
}

TEST(JsonTest, WritesNumbersSoThatTheyReadBackWithTheirType) {
  const std::pair<Json, std::string> cases[] = {
      {1.0, "1.0"},
      {-0.0, "-0.0"},
      {0.1, "0.1"},
      {123456.789, "123456.789"},
      {1e15, "1e+15"},
      {1e-4, "0.0001"},
      {1e-5, "1e-05"},
      {5e-324, "5e-324"},
      {std::numeric_limits<double>::max(), "1.7976931348623157e+308"},
      {std::numeric_limits<double>::infinity(), "null"},
      {std::numeric_limits<double>::quiet_NaN(), "null"},
      {INT64_MIN, "-9223372036854775808"},
      {UINT64_MAX, "18446744073709551615"},
      {uint8_t{7}, "7"},
      {true, "true"},
  };
  for (const auto& [value, text] : cases) EXPECT_EQ(JsonText(value), text);
}

TEST(JsonTest, WritesAMemberOnEachLineWithIndent) {
  const Json json{{"a", Json::array()},
                  {"b", Json::object()},
                  {"c", std::vector<Json>{1, Json{{"d", std::map<std::string, int>{{"e", 2}}}}}}};
  EXPECT_EQ(JsonText(json, 1),
            "{\n \"a\": [],\n \"b\": {},\n \"c\": [\n  1,\n  {\n   \"d\": {\n    \"e\": 2\n   }\n  "
            "}\n ]\n}");
}

// --- values --------------------------------------------------------------------------------------

TEST(JsonTest, EqualNumbersAndObjectsAreEqualInEveryForm) {
  EXPECT_EQ(Json(5), Json(5u));
  EXPECT_EQ(Json(5), Json(5.0));
  EXPECT_NE(Json(-1), Json(UINT64_MAX));
  EXPECT_NE(Json(1), Json(true));
  EXPECT_NE(Json(), Json(false));
  EXPECT_EQ((Json{{"a", 1}, {"b", {{"c", "d"}}}}), (Json{{"b", {{"c", "d"}}}, {"a", 1}}));
  EXPECT_NE((Json{{"a", 1}}), (Json{{"a", 1}, {"b", 1}}));
  EXPECT_NE((Json{{"a", 1}}), (Json{{"b", 1}}));
  EXPECT_NE(Json::array({1, 2}), Json::array({2, 1}));
}

TEST(JsonTest, ReturnsEmptyValuesForAbsentMembersAndOtherTypes) {
  const Json json{{"text", "a"}, {"list", Json::array({1})}};
  EXPECT_TRUE(json.at("absent").at("more").at(3).is_null());
  EXPECT_TRUE(json.at("list").at(1).is_null());
  EXPECT_EQ(json.at("list").text(), "");
  EXPECT_EQ(json.at("text").whole(), std::nullopt);
  EXPECT_FALSE(json.at("text").boolean());
  EXPECT_EQ(json.at("text").size(), 0u);
  EXPECT_EQ(json.Find("absent"), nullptr);
}

TEST(JsonTest, ChangesMembersAndItemsInPlace) {
  Json json;
  json["b"]["c"] = 1;
  json["a"].push_back("x");
  json["b"]["c"] = 2;
  json["gone"] = true;
  json.erase("gone");
  EXPECT_EQ(JsonText(json), R"({"b":{"c":2},"a":["x"]})");
  EXPECT_DEATH(json.push_back(1), "of another type");
}

// --- members -------------------------------------------------------------------------------------

struct Members {
  std::string text{};
  int64_t number = 0;
  bool flag = false;
  std::string others{};

  friend bool operator==(const Members&, const Members&) = default;
};

std::string Write(const Members& members) {
  return JsonWriter()
      .Text("text", members.text)
      .Number("number", members.number)
      .Flag("flag", members.flag)
      .Others(members.others)
      .Done();
}

Result<Members> Read(std::string_view json) {
  JsonReader read(json, 8192);
  Members members;
  read.Text("text", members.text, 4)
      .Number("number", members.number, -1, 7)
      .Flag("flag", members.flag)
      .Others(members.others);
  FIRN_TRY(read.status());
  return members;
}

TEST(JsonObjectTest, KeepsMembersOfALaterVersion) {
  const Members members{"a\"b", 7, true, R"({"later":{"x":[1,null]},"too":-0.5})"};
  EXPECT_EQ(Write(members),
            R"({"text":"a\"b","number":7,"flag":true,"later":{"x":[1,null]},"too":-0.5})");
  EXPECT_EQ(Read(Write(members)).value(), members);
  EXPECT_EQ(Write({}), R"({"text":"","number":0,"flag":false})");
  EXPECT_EQ(Read(Write({})).value(), Members());
}

TEST(JsonObjectTest, ReadsBackWhatItWritesForAnyBytes) {
  EXPECT_EQ(Read(Write({.text = "a\n\x7f"})).value().text, "a??");
  EXPECT_EQ(Read(Write({.text = "a\xff"})).value().text, "a\xef\xbf\xbd");
}

TEST(JsonObjectTest, ReportsTheFirstFault) {
  const std::pair<std::string, std::string> cases[] = {
      {R"({})", "\"text\" is missing"},
      {R"({"text":1})", "\"text\" must be a string"},
      {R"({"text":"abcde"})", "\"text\" is too long"},
      {R"({"text":"a\u0000"})", "\"text\" has a control character"},
      {R"({"text":"\u007f"})", "\"text\" has a control character"},
      {R"({"text":"","number":"1"})", "\"number\" is not a whole number of 63 bits"},
      {R"({"text":"","number":1e3})", "\"number\" is not a whole number of 63 bits"},
      {R"({"text":"","number":9223372036854775808})",
       "\"number\" is not a whole number of 63 bits"},
      {R"({"text":"","number":8,"flag":1})", "\"number\" is out of range"},
      {R"({"text":"","number":-2})", "\"number\" is out of range"},
      {R"({"text":"","number":0,"flag":0})", "\"flag\" must be true or false"},
      {R"({"text":"","number":0,"flag":true,"x":")" + std::string(4096, 'x') + "\"}",
       "members that this version does not know are too large"},
      {R"({"text":"","number":0)", "is not valid JSON: error at byte 22"},
  };
  for (const auto& [json, reason] : cases) EXPECT_EQ(Read(json).status(), Corrupt(reason)) << json;
}

TEST(JsonObjectTest, AMissingOptionalMemberLeavesTheValueUnchanged) {
  JsonReader read(R"({"there":5})", 100);
  int64_t there = 1, absent = 2;
  bool flag = true;
  read.NumberIfAny("there", there, 0, 9).NumberIfAny("absent", absent, 0, 9).FlagIfAny("f", flag);
  EXPECT_TRUE(read.status().ok());
  EXPECT_EQ(std::pair(there, absent), std::pair(int64_t{5}, int64_t{2}));
  EXPECT_TRUE(flag);
  EXPECT_EQ(read.NumberIfAny("there", there, 0, 4).status(), Corrupt("\"there\" is out of range"));
}

TEST(JsonObjectTest, ReadsANestedObjectTheSameWay) {
  const Json list = ParseJson(R"({"list":[{"a":7},7]})", 100).value().at("list");
  int64_t a = 0;
  EXPECT_TRUE(JsonReader(list.at(0)).Number("a", a, 0).status().ok());
  EXPECT_EQ(a, 7);
  EXPECT_EQ(JsonReader(list.at(1)).Number("a", a, 0).status(), Corrupt("is not a JSON object"));
}

}  // namespace
}  // namespace firn
