#include <gtest/gtest.h>

#include "common/id/layout.h"
#include "common/json/json.h"
#include "server/front/http/http_refusal.h"
#include "tests/server/front/http/http_calls.h"
#include "tests/support/json_of.h"

namespace firn::front {
namespace {

class HttpNativeTest : public testing::Test {
 protected:
  Issuing issuing_;
  HttpSide http_{issuing_};
};

TEST_F(HttpNativeTest, GivesOneIdThatCachesMustNotStore) {
  const auto answer = http_.Get("/v1/ids/order");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_TRUE(answer.HasField("Cache-Control: no-store"));
  EXPECT_TRUE(answer.HasField("Content-Type: application/json"));
  const auto json = answer.json();
  EXPECT_EQ(json.at("tag"), "order");
  ASSERT_EQ(json.at("ids").size(), 1u);
  const int64_t id = std::stoll(json.at("ids").at(0).text());
  EXPECT_EQ(Layout::Firn().Unpack(id)->machine, MachineId(5));
}

TEST_F(HttpNativeTest, GivesJsonNumbersOnlyIfJavaScriptReadsThemExactly) {
  EXPECT_EQ(http_.Get("/v1/ids/slow").body, R"({"tag":"slow","ids":["1"],"numbers":[1]})");
  issuing_.slow->next = (int64_t{1} << 53) - 1;
  EXPECT_TRUE(http_.Get("/v1/ids/slow").json().contains("numbers"));
  EXPECT_EQ(http_.Get("/v1/ids/slow").body, R"({"tag":"slow","ids":["9007199254740992"]})");
}

TEST_F(HttpNativeTest, GivesIdsInEachRequestedForm) {
  EXPECT_EQ(http_.Get("/v1/ids/slow?count=3").json().at("ids"), JsonOf(R"(["1","2","3"])"));
  EXPECT_EQ(http_.Get("/v1/ids/slow?count=2&form=text").body,
            R"({"tag":"slow","texts":["slow-4","slow-5"]})");
  EXPECT_EQ(http_.Get("/v1/ids/slow?form=runs&count=1000000").body,
            R"({"tag":"slow","runs":[{"first":"6","count":1000000,"stride":1}]})");
  EXPECT_EQ(http_.Post("/v1/ids/slow", "form=number&count=1").json().at("ids").at(0), "1000006");
}

TEST_F(HttpNativeTest, GivesLongListsInSeveralTurns) {
  const auto expect_all = [&](std::string_view form, std::string_view key, bool text) {
    issuing_.slow->next = 1;
    const auto json =
        http_.Get("/v1/ids/slow?count=10000&form=" + std::string(form)).json().at(key);
    ASSERT_EQ(json.size(), 10'000u);
    for (size_t i = 0; i < json.size(); ++i) {
      const std::string id = std::to_string(i + 1);
      ASSERT_EQ(json.at(i).text(), text ? "slow-" + id : id);
    }
  };
  expect_all("number", "ids", false);
  expect_all("text", "texts", true);
  issuing_.slow->next = 1;
  const auto numbers = http_.Get("/v1/ids/slow?count=4097").json().at("numbers");
  ASSERT_EQ(numbers.size(), 4097u);
  EXPECT_EQ(numbers.at(4096), JsonOf("4097"));
  if (ChosenForm() != Form::kPlain) return;
  DoorCall door;
  OutBuffer out;
  ServeStep step =
      http_.protocol().Serve("GET /v1/ids/slow?count=4097 HTTP/1.1\r\nHost: x\r\n\r\n", door, out);
  for (int turns = 1; turns < 4; ++turns) {
    ASSERT_EQ(step.kind, ServeStep::Kind::kMore) << "two turns for each of two lists";
    step = std::exchange(step.parked, nullptr)->Retry(door, out);
  }
  EXPECT_EQ(step.kind, ServeStep::Kind::kServed);
}

TEST_F(HttpNativeTest, ServesTheDefaultTagIfNoneIsGiven) {
  const auto answer = http_.Get("/v1/ids/");
  EXPECT_EQ(answer.status(), 200);
  EXPECT_EQ(answer.json().at("tag"), "order");
}

TEST_F(HttpNativeTest, RefusesWithTheReasonAndItsStatus) {
  const struct {
    const char* target;
    int status;
    const char* reason;
  } kCases[] = {
      {"/v1/ids/nothing", 404, "UNKNOWN_TAG"},
      {"/v1/ids/order?count=0", 400, "BAD_REQUEST"},
      {"/v1/ids/order?count=-5", 400, "BAD_REQUEST"},
      {"/v1/ids/order?count=100001", 400, "BAD_REQUEST"},
      {"/v1/ids/order?count=99999999999999999999", 400, "BAD_REQUEST"},
      {"/v1/ids/order?count=ten", 400, "BAD_REQUEST"},
      {"/v1/ids/order?form=picture", 400, "BAD_REQUEST"},
      {"/v1/ids/slow?form=runs&count=10000001", 400, "BAD_REQUEST"},
      {"/v1/ids/%zz", 400, "BAD_REQUEST"},
      {"/v1/explain/twelve", 400, "BAD_REQUEST"},
      {"/v1/explain/-1", 400, "BAD_REQUEST"},
      {"/v1/explain/1?layout=nothing", 400, "BAD_REQUEST"},
      {"/v1/compose", 400, "BAD_REQUEST"},
      {"/v1/compose?ticks=1&sequence=4096", 400, "BAD_REQUEST"},
      {"/v1/compose?ticks=1&machine=-1", 400, "BAD_REQUEST"},
      {"/v1/time/-1", 400, "BAD_REQUEST"},
  };
  for (const auto& c : kCases) {
    const auto answer = http_.Get(c.target);
    EXPECT_EQ(answer.status(), c.status) << c.target;
    const auto error = answer.json().at("error");
    EXPECT_EQ(error.at("reason"), c.reason) << c.target;
    EXPECT_FALSE(error.at("message").text().empty()) << c.target;
    EXPECT_TRUE(error.contains("retry_after_ms") && error.contains("another_server_may_help"));
  }
}

TEST_F(HttpNativeTest, ExplainsIdsMadeByCompose) {
  const auto composed =
      http_.Get("/v1/compose?time_ms=1567733700834&worker=9&rack=3&sequence=3448&layout=twitter");
  EXPECT_EQ(composed.json().at("id"), "1169786042799259000");
  const auto json = http_.Get("/v1/explain/1169786042799259000?layout=twitter").json();
  EXPECT_EQ(json.at("layout"), "twitter");
  EXPECT_EQ(json.at("time"), "2019-09-06T01:35:00.834Z");
  EXPECT_EQ(json.at("time_ms"), 1567733700834);
  EXPECT_EQ(json.at("machine"), 39);
  EXPECT_EQ(json.at("worker"), 9);
  EXPECT_EQ(json.at("rack"), 3);
  EXPECT_EQ(json.at("sequence"), 3448);
  EXPECT_FALSE(json.contains("version"));
}

TEST_F(HttpNativeTest, ReturnsTheStartOfATick) {
  EXPECT_EQ(http_.Get("/v1/time/12235264?layout=vesta-max-peak").json().at("time"),
            "2015-05-22T06:41:04.000Z");
}

TEST_F(HttpNativeTest, SendsRetryAfter) {
  Refusal refusal{Reason::kNotReady, "a \"quoted\" sentence", 1200, true};
  HttpAnswer answer;
  AnswerRefusal(refusal, answer);
  OutBuffer out;
  AppendHttp(answer, HttpRequest(), out);
  EXPECT_NE(out.view().find("HTTP/1.1 503 "), std::string_view::npos);
  EXPECT_NE(out.view().find("\r\nRetry-After: 2\r\n"), std::string_view::npos);
  EXPECT_EQ(JsonOf(answer.body).at("error").at("message"), refusal.message);
}

}  // namespace
}  // namespace firn::front
