// HTTP does not guess: unknown parameters are reported, and no request can be read in two ways.

#include <gtest/gtest.h>

#include "tests/server/front/http/http_calls.h"

namespace firn::front {
namespace {

class HttpStrictTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
  }
  HttpSide::Answer Send(const std::string& verb, const std::string& target,
                        const std::string& type = {}, const std::string& body = {}) {
    std::string request = verb + " " + target + " HTTP/1.1\r\nHost: x\r\n";
    if (!type.empty()) request += "Content-Type: " + type + "\r\n";
    if (!body.empty()) request += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    return http_.Raw(request + "\r\n" + body);
  }
  void ExpectBad(const HttpSide::Answer& answer, const std::string& part) {
    EXPECT_EQ(answer.status(), 400) << answer.head << answer.body;
    EXPECT_NE(answer.body.find(part), std::string::npos) << answer.body;
    EXPECT_EQ(answer.step.kind, ServeStep::Kind::kServed) << "the connection must stay open";
    EXPECT_EQ(issuing_.slow->asked, 0) << "an id was issued";
  }

  static std::string ManyMembers(int count) {
    std::string json = "{";
    for (int i = 0; i < count; ++i) json += (i == 0 ? "\"m" : ",\"m") + std::to_string(i) + "\":0";
    return json + "}";
  }

  static constexpr const char* kForm = "application/x-www-form-urlencoded";
  static constexpr const char* kJson = "application/json";

  Issuing issuing_;
  HttpSide http_{issuing_};
};

TEST_F(HttpStrictTest, NamesUnknownParameters) {
  const struct {
    const char* target;
    const char* part;
  } table[] = {
      {"/v1/ids/slow?cuont=3", "cuont"},       {"/v1/ids/slow?count=3&form=runs&tag=x", "tag"},
      {"/v1/ids/slow?Count=3", "Count"},       {"/v1/ids/slow?=3", "''"},
      {"/v1/explain/1?layuot=firn", "layuot"}, {"/v1/compose?ticks=1&machin=3", "machin"},
      {"/v1/time/1?count=1", "count"},         {"/v1/servers?version=1", "version"}};
  for (const auto& row : table) ExpectBad(Send("GET", row.target), row.part);
  ExpectBad(Send("POST", "/v1/ids/slow", kForm, "cuont=3"), "cuont");
  ExpectBad(Send("POST", "/v1/ids/slow", kJson, R"({"cuont":3})"), "cuont");
}

TEST_F(HttpStrictTest, RefusesRepeatedParameters) {
  ExpectBad(Send("GET", "/v1/ids/slow?count=3&count=4"), "count");
  ExpectBad(Send("POST", "/v1/ids/slow?count=3", kForm, "count=4"), "count");
  ExpectBad(Send("POST", "/v1/ids/slow?count=3", kJson, R"({"count":4})"), "count");
  ExpectBad(Send("POST", "/v1/ids/slow", kJson, R"({"count":4,"count":5})"), "duplicate");
  const auto both = Send("POST", "/v1/ids/slow?count=3", kForm, "form=text");
  EXPECT_EQ(both.status(), 200) << "different parameters in two places do not contradict";
  EXPECT_EQ(both.json().at("texts").size(), 3u);
}

TEST_F(HttpStrictTest, RequiresABodyOfJsonOrAForm) {
  const auto runs = Send("POST", "/v1/ids/slow", kJson, R"({"count":3,"form":"runs"})");
  EXPECT_EQ(runs.status(), 200) << runs.body;
  EXPECT_EQ(runs.json().at("runs").at(0).at("count"), 3);
  const auto typed =
      Send("POST", "/v1/ids/slow", "Application/JSON; charset=utf-8", R"({"count":"2"})");
  EXPECT_EQ(typed.json().at("ids").size(), 2u) << typed.body;
  EXPECT_EQ(Send("POST", "/v1/ids/slow", kJson, "{}").json().at("ids").size(), 1u);
  const auto composed = Send("POST", "/v1/compose", kJson, R"({"ticks":7,"layout":"firn"})");
  EXPECT_EQ(composed.status(), 200) << composed.body;
  issuing_.slow->asked = 0;

  ExpectBad(Send("POST", "/v1/ids/slow", kJson, R"({"count":)"), "JSON");
  ExpectBad(Send("POST", "/v1/ids/slow", kJson, R"([3])"), "object");
  ExpectBad(Send("POST", "/v1/ids/slow", kJson, R"({"count":[3]})"), "count");
  ExpectBad(Send("POST", "/v1/ids/slow", kJson, R"({"count":3.5})"), "count");
  ExpectBad(Send("POST", "/v1/ids/slow", kJson, ManyMembers(16)), "unknown parameter 'm0'");
  ExpectBad(Send("POST", "/v1/ids/slow", kJson, ManyMembers(17)), "more than 16 values");
  ExpectBad(Send("POST", "/v1/ids/slow", kJson, ManyMembers(4'000)), "more than 16 values");
  ExpectBad(Send("POST", "/v1/ids/slow", "text/plain", "count=3"), "Content-Type");
  ExpectBad(Send("POST", "/v1/ids/slow", {}, "count=3"), "Content-Type");
  ExpectBad(Send("GET", "/v1/ids/slow", kForm, "count=3"), "body");
}

TEST_F(HttpStrictTest, HeadEqualsGetWithoutABody) {
  for (const char* target : {"/v1/explain/1", "/v1/time/1", "/v1/ids/slow?count=3", "/nowhere",
                             "/v1/explain/x", "/decodeSnowflakeId?snowflakeId=1", "/expid?id=1"}) {
    const auto got = Send("GET", target);
    issuing_.slow->next = 1;
    const auto head = Send("HEAD", target);
    EXPECT_EQ(head.head.substr(0, 15), got.head.substr(0, 15)) << target;
    EXPECT_EQ(head.body, "") << target;
    EXPECT_EQ(Send("GET", "/v1/explain/1").status(), 200) << "the connection is out of step";
    issuing_.slow->next = 1;
  }
  const auto head = Send("HEAD", "/v1/explain/1");
  const auto got = Send("GET", "/v1/explain/1");
  EXPECT_TRUE(head.HasField("Content-Length: " + std::to_string(got.body.size()))) << head.head;
}

TEST_F(HttpStrictTest, AHeadIssuesNothing) {
  for (const char* target :
       {"/v1/ids/slow?count=3", "/v1/ids/slow", "/v1/ids/slow?form=text", "/id/nextId?bizType=slow",
        "/id/nextSegmentIdSimple?bizType=slow", "/api/segment/get/slow"}) {
    issuing_.slow->asked = 0;
    const auto head = Send("HEAD", target);
    EXPECT_EQ(head.status(), 200) << target << head.head;
    EXPECT_EQ(head.head.find("Content-Length"), std::string::npos) << "the length is not known";
    EXPECT_EQ(issuing_.slow->asked, 0) << target;
  }
  const auto before = std::stoll(Send("GET", "/api/snowflake/get/order").body);
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Send("HEAD", "/api/snowflake/get/order").status(), 200);
  EXPECT_EQ(std::stoll(Send("GET", "/api/snowflake/get/order").body), before + 1);
  EXPECT_EQ(Send("HEAD", "/v1/ids/no-such-tag").status(), 404);
}

// The fast path answers a repeated request with a body, which a HEAD must not get.
TEST_F(HttpStrictTest, ARepeatedHeadHasNoBody) {
  for (int i = 0; i < 5; ++i) {
    const auto head = Send("HEAD", "/api/snowflake/get/order");
    EXPECT_EQ(head.status(), 200);
    EXPECT_EQ(head.body, "");
  }
}

TEST_F(HttpStrictTest, OptionsListsMethodsAndHasNoEffect) {
  const struct {
    const char* target;
    const char* allow;
  } table[] = {{"/v1/ids/slow", "GET, HEAD, POST, OPTIONS"},
               {"/v1/ids/slow?cuont=3", "GET, HEAD, POST, OPTIONS"},
               {"/v1/explain/1", "GET, HEAD, POST, OPTIONS"},
               {"/v1/servers", "GET, HEAD, OPTIONS"},
               {"/api/segment/get/slow", "GET, HEAD, POST, OPTIONS"},
               {"/decodeSnowflakeId", "GET, HEAD, POST, OPTIONS"},
               {"/genid", "GET, HEAD, POST, OPTIONS"},
               {"/expid?id=1", "GET, HEAD, POST, OPTIONS"},
               {"/transtime", "GET, HEAD, POST, OPTIONS"},
               {"/makeid", "GET, HEAD, POST, OPTIONS"},
               {"/id/nextId?bizType=slow", "GET, HEAD, POST, OPTIONS"},
               {"*", "GET, HEAD, POST, OPTIONS"}};
  for (const auto& row : table) {
    const auto answer = Send("OPTIONS", row.target);
    EXPECT_EQ(answer.status(), 204) << row.target << answer.head;
    EXPECT_TRUE(answer.HasField(std::string("Allow: ") + row.allow)) << row.target << answer.head;
    EXPECT_EQ(answer.body, "") << row.target;
    EXPECT_EQ(answer.head.find("Content-Length"), std::string::npos) << answer.head;
    const std::string other = *row.target == '*' ? "/v1/ids/slow" : row.target;
    EXPECT_EQ(Send("DELETE", other).status(), 405) << other;
  }
  EXPECT_EQ(Send("OPTIONS", "/nowhere").status(), 404);
  EXPECT_EQ(issuing_.slow->asked, 0);
  EXPECT_EQ(issuing_.slow->next, 1) << "an id was used";
}

// A request as browsers send it, with these fields.
std::string OfBrowser(const std::string& target, const std::string& host,
                      const std::string& fields) {
  return "POST " + target + " HTTP/1.1\r\nHost: " + host + "\r\n" + fields +
         "Content-Type: text/plain\r\nContent-Length: 0\r\n\r\n";
}

TEST_F(HttpStrictTest, RefusesPagesOfOtherSites) {
  const std::string here = "firn.example:7609";
  const auto status = [&](const std::string& target, const std::string& fields) {
    return http_.Raw(OfBrowser(target, here, fields)).status();
  };
  for (const std::string target : {"/v1/ids/slow", "/api/snowflake/get/slow", "/genid",
                                   "/id/nextId?bizType=slow", "/v1/servers"}) {
    for (const std::string fields :
         {"Sec-Fetch-Site: cross-site\r\n", "Origin: https://other.example\r\n", "Origin: null\r\n",
          "Origin: http://firn.example:80\r\n", "Origin: http://firn.example.other:7609\r\n",
          "Sec-Fetch-Site: same-site\r\nOrigin: http://other.example\r\n",
          "Sec-Fetch-Site: cross-site\r\nOrigin: http://firn.example:7609\r\n"}) {
      EXPECT_EQ(status(target, fields), 403) << target << fields;
    }
  }
  EXPECT_EQ(http_.Raw("GET /v1/ids/slow HTTP/1.1\r\nHost: x\r\nsec-fetch-site: cross-site\r\n\r\n")
                .status(),
            403);
  EXPECT_EQ(issuing_.slow->asked, 0) << "an id was issued";
  for (const std::string fields :
       {"", "Sec-Fetch-Site: none\r\n", "Sec-Fetch-Site: same-origin\r\nOrigin: https://proxy\r\n",
        "Origin: http://FIRN.example:7609\r\n"}) {
    EXPECT_EQ(status("/v1/ids/slow", fields), 200) << fields;
  }
}

TEST_F(HttpStrictTest, AcceptsTheListedHostsOnly) {
  HttpSide http(issuing_, {}, {"ids.example", "app.example"});
  const auto status = [&](const std::string& host, const std::string& fields = {}) {
    return http.Raw(OfBrowser("/v1/ids/slow", host, fields)).status();
  };
  EXPECT_EQ(status("rebound.example:7609"), 403);
  EXPECT_EQ(issuing_.slow->asked, 0) << "an id was issued";
  for (const std::string host :
       {"ids.example", "IDS.example:7609", "10.0.0.7:7609", "[::1]:7609", "localhost", ""}) {
    EXPECT_EQ(status(host), 200) << host;
  }
  EXPECT_EQ(status("ids.example", "Sec-Fetch-Site: cross-site\r\nOrigin: https://app.example\r\n"),
            200);
  EXPECT_EQ(status("ids.example", "Origin: https://other.example\r\n"), 403);
}

}  // namespace
}  // namespace firn::front
