#include <set>

#include <gtest/gtest.h>

#include "common/id/layout.h"
#include "common/json/json.h"
#include "tests/server/front/http/http_calls.h"

namespace firn::front {
namespace {

class DropInTest : public testing::Test {
 protected:
  void UseLayout(const Layout& layout) { issuing_.view.layout_ = layout; }

  Issuing issuing_;
  HttpSide http_{issuing_};
};

// --- Leaf ----------------------------------------------------------------------------------------

TEST_F(DropInTest, LeafGetsPlainTextFromBothPaths) {
  EXPECT_EQ(http_.Get("/api/segment/get/slow").body, "1");
  const auto answer = http_.Get("/api/snowflake/get/slow");
  EXPECT_EQ(answer.body, "2");
  EXPECT_TRUE(answer.HasField("Cache-Control: no-store"));
}

TEST_F(DropInTest, LeafGetsErrorsAs500WithAMessage) {
  for (const char* path : {"/api/segment/get/nothing", "/api/snowflake/get/"}) {
    const auto answer = http_.Get(path);
    EXPECT_EQ(answer.status(), 500) << path;
    EXPECT_GT(answer.body.size(), 5u) << path;
  }
}

TEST_F(DropInTest, LeafSegmentPathRefusesSnowflakeTags) {
  EXPECT_EQ(http_.Get("/api/snowflake/get/order").status(), 200);
  const auto answer = http_.Get("/api/segment/get/order");
  EXPECT_EQ(answer.status(), 500);
  EXPECT_EQ(answer.body, "'order' is not a segment tag");
}

TEST_F(DropInTest, LeafDecodesIntoStrings) {
  UseLayout(Layout::Twitter());
  EXPECT_EQ(http_.Get("/decodeSnowflakeId?snowflakeId=1169786042799259000").body,
            R"j({"timestamp":"1567733700834(2019-09-06 01:35:00.834)","workerId":"39",)j"
            R"j("sequenceId":"3448"})j");
  EXPECT_TRUE(http_.Get("/decodeSnowflakeId?snowflakeId=x").json().contains("errorMsg"));
  EXPECT_TRUE(http_.Get("/decodeSnowflakeId").json().contains("errorMsg"));
}

// --- Vesta ---------------------------------------------------------------------------------------

TEST_F(DropInTest, VestaGetsAnIdOfTheDefaultTag) {
  const int64_t id = std::stoll(http_.Get("/genid").body);
  EXPECT_EQ(Layout::Firn().Unpack(id)->machine, MachineId(5));
}

TEST_F(DropInTest, VestaExplainsIdsAndReturnsTheTime) {
  UseLayout(Layout::VestaMaxPeak());
  EXPECT_EQ(http_.Get("/expid?id=13137514684481537").body,
            R"({"genMethod":0,"machine":1,"seq":0,"time":12235264,"type":0,"version":0})");
  EXPECT_EQ(http_.Get("/transtime?time=12235264").body, "Fri May 22 06:41:04 UTC 2015");
}

TEST_F(DropInTest, VestaMakesIdsOfEverySubsetOfFields) {
  UseLayout(Layout::VestaMaxPeak());
  const std::pair<const char*, int> kOptional[] = {
      {"version", 0}, {"type", 0}, {"genMethod", 1}, {"machine", 1022}};
  std::set<std::string> made;
  for (unsigned subset = 0; subset < 16; ++subset) {
    std::string target = "/makeid?time=12758739&seq=77";
    // Fields that are absent are this server's own: its machine id, and 2 for HTTP.
    std::map<std::string, int> expected = {{"time", 12758739}, {"seq", 77},      {"version", 0},
                                           {"type", 0},        {"genMethod", 2}, {"machine", 5}};
    for (unsigned i = 0; i < 4; ++i) {
      if ((subset & 1U << i) == 0) continue;
      expected[kOptional[i].first] = kOptional[i].second;
      target += std::string("&") + kOptional[i].first + "=" + std::to_string(kOptional[i].second);
    }
    const auto answer = http_.Get(target);
    ASSERT_EQ(answer.status(), 200) << target << ": " << answer.body;
    EXPECT_EQ(http_.Get("/expid?id=" + answer.body).json(), Json(expected)) << target;
    made.insert(answer.body);
  }
  EXPECT_EQ(made.size(), 4u) << "method and machine id differ, each given or not";
  EXPECT_EQ(http_.Get("/makeid?genMethod=2&time=12758739&seq=0&machine=1022").body,
            "2319542600899494910");
}

TEST_F(DropInTest, VestaRefusesMissingAndWrongFields) {
  UseLayout(Layout::VestaMaxPeak());
  for (const char* target :
       {"/makeid", "/makeid?time=1", "/makeid?seq=1", "/makeid?time=1&seq=1048576",
        "/makeid?time=1&seq=-1", "/makeid?time=-1&seq=1", "/makeid?time=x&seq=1",
        "/makeid?time=1&seq=1&machine=1024", "/makeid?time=1&seq=1&genMethod=4",
        "/makeid?time=1&seq=1&version=2", "/expid", "/expid?id=", "/expid?id=abc", "/transtime",
        "/transtime?time=x", "/transtime?time=99999999999999"}) {
    EXPECT_EQ(http_.Get(target).status(), 400) << target;
  }
  issuing_.view.machine_.reset();
  EXPECT_EQ(http_.Get("/makeid?time=1&seq=1").status(), 400);
  EXPECT_EQ(http_.Get("/makeid?time=1&seq=1&machine=0").status(), 200);
}

// --- Tinyid --------------------------------------------------------------------------------------

TEST_F(DropInTest, TinyidGetsIdsInBothForms) {
  EXPECT_EQ(http_.Get("/id/nextId?bizType=slow").body, R"({"data":[1],"code":200,"message":""})");
  EXPECT_EQ(http_.Get("/tinyid/id/nextId?bizType=slow&batchSize=2&token=any").body,
            R"({"data":[2,3],"code":200,"message":""})");
  EXPECT_EQ(http_.Get("/id/nextIdSimple?bizType=slow&batchSize=3").body, "4,5,6");
  EXPECT_EQ(http_.Post("/tinyid/id/nextIdSimple", "bizType=slow").body, "7");
}

TEST_F(DropInTest, TinyidGetsRangesThatItsClientCountsThrough) {
  EXPECT_EQ(http_.Get("/id/nextSegmentId?bizType=slow").body,
            R"({"data":{"currentId":0,"loadingId":200,"maxId":1000,"delta":1,"remainder":0},)"
            R"("code":200,"message":""})");
  EXPECT_EQ(http_.Get("/id/nextSegmentIdSimple?bizType=slow").body, "1000,1200,2000,1,0");
  EXPECT_EQ(issuing_.slow->next, 2001);
}

TEST_F(DropInTest, TinyidGetsErrorsAsACodeAndNeverAsAnId) {
  EXPECT_EQ(http_.Get("/id/nextId?bizType=nothing").json().at("code"), 6);
  EXPECT_EQ(http_.Get("/id/nextId").json().at("code"), 6);
  EXPECT_EQ(http_.Get("/id/nextId?bizType=slow&batchSize=100001").json().at("code"), 6);
  EXPECT_EQ(http_.Get("/id/nextIdSimple?bizType=nothing").body, "");
  EXPECT_EQ(http_.Get("/id/nextSegmentIdSimple?bizType=nothing").body, "");
  EXPECT_EQ(http_.Get("/id/nothing?bizType=slow").status(), 404);
}

TEST_F(DropInTest, TinyidChecksTokensIfConfigured) {
  HttpSide guarded(issuing_, [](std::string_view token, std::string_view tag) {
    return token == "secret" && tag == "slow";
  });
  EXPECT_EQ(guarded.Get("/id/nextId?bizType=slow&token=secret").json().at("code"), 200);
  for (const char* target : {"/id/nextId?bizType=slow", "/id/nextId?bizType=slow&token=wrong",
                             "/id/nextId?bizType=order&token=secret"}) {
    const auto json = guarded.Get(target).json();
    EXPECT_EQ(json.at("code"), 5) << target;
    EXPECT_EQ(json.at("message"), "token is error") << target;
    EXPECT_TRUE(json.at("data").is_null()) << target;
  }
  EXPECT_EQ(guarded.Get("/id/nextIdSimple?bizType=slow").body, "");
}

}  // namespace
}  // namespace firn::front
