// The admin side's answers about the whole cluster.

#include <functional>
#include <optional>

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "server/front/http/http_handlers.h"
#include "tests/support/json_of.h"

namespace firn::front {
namespace {

class ScriptedCluster final : public ClusterView {
 public:
  ClusterReading Audit() override { return asked += "audit ", word; }
  ClusterReading Tags() override { return asked += "tags ", word; }
  ClusterReading Consumers() override { return asked += "consumers ", word; }
  ClusterReading Who(int64_t id) override { return asked += std::to_string(id) + " ", word; }

  void Say(const std::string& json, Milliseconds age, Status trouble = {}) {
    word = {std::make_shared<const std::string>(json), age, std::move(trouble)};
  }

  std::string asked;
  ClusterReading word;
};

class HttpClusterTest : public testing::Test {
 protected:
  std::optional<HttpAnswer> Ask(std::string_view path, HttpVerb verb = HttpVerb::kGet,
                                std::string_view host = "127.0.0.1:7610",
                                std::string_view query = {}) {
    HttpRequest request;
    request.verb = verb;
    request.path = path;
    request.query = query;
    request.host = host;
    DoorCall door;
    HttpAnswer answer;
    HttpHandler::Outcome outcome = handler_->Handle(request, door, answer);
    for (; outcome == HttpHandler::Outcome::kPark; outcome = parked_.retry(door, answer)) {
      parked_ = handler_->TakeParked();
      while_parked_(door);
    }
    if (outcome != HttpHandler::Outcome::kAnswered) return {};
    return answer;
  }
  Json Told(std::string_view path) { return JsonOf(Ask(path)->body); }

  ScriptedCluster cluster_;
  HttpHandler::Parked parked_;  // the last one
  std::function<void(DoorCall&)> while_parked_;
  std::unique_ptr<HttpHandler> handler_ = MakeClusterHandler(cluster_, {"firn-1.example"});
};

TEST_F(HttpClusterTest, ReturnsTheLastReadingWithItsAge) {
  cluster_.Say(R"({"faults":[]})", Milliseconds(1'234));
  for (const char* path : {"/v1/audit", "/v1/tags", "/v1/consumers", "/v1/who/4194304"}) {
    const HttpAnswer answer = *Ask(path);
    EXPECT_EQ(answer.status, 200);
    EXPECT_TRUE(answer.for_admins && answer.no_store) << path;
    const Json told = JsonOf(answer.body);
    EXPECT_EQ(told, (Json{{"faults", Json::array()}, {"age_ms", 1'234}})) << path;
  }
  EXPECT_EQ(cluster_.asked, "audit tags consumers 4194304 ");
}

TEST_F(HttpClusterTest, ARequestWaitsForTheFirstReading) {
  for (const char* path : {"/v1/audit", "/v1/tags", "/v1/consumers", "/v1/who/4194304"}) {
    cluster_.word = {};
    while_parked_ = [this](DoorCall&) { cluster_.Say(R"({"faults":[]})", Milliseconds(3)); };
    const HttpAnswer answer = *Ask(path);
    EXPECT_EQ(answer.status, 200) << path;
    EXPECT_TRUE(answer.for_admins && answer.no_store) << path;
    EXPECT_EQ(JsonOf(answer.body).at("age_ms"), 3);
  }
  EXPECT_EQ(parked_.patience_ms, 2000);
}

TEST_F(HttpClusterTest, ARequestThatTimesOutGetsARetryTime) {
  while_parked_ = [](DoorCall& door) { door.last = true; };
  const HttpAnswer answer = *Ask("/v1/audit");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(answer.retry_after_ms, 1000);
  EXPECT_EQ(JsonOf(answer.body).at("error").at("message"), "the cluster is being read; try again");
  EXPECT_EQ(cluster_.asked, "audit audit ");
}

TEST_F(HttpClusterTest, KeepsAnOldReadingAndReportsWhyItIsOld) {
  cluster_.word.trouble = Unavailable("no connection \"here\"");
  EXPECT_EQ(Ask("/v1/audit")->status, 503);
  EXPECT_EQ(Told("/v1/audit").at("error").at("message"), "no connection \"here\"");
  cluster_.Say("{\"faults\":[]}", Milliseconds(9), Unavailable("no connection \"here\""));
  EXPECT_EQ(Ask("/v1/audit")->status, 200);
  EXPECT_EQ(Told("/v1/audit").at("trouble"), "no connection \"here\"");
}

TEST_F(HttpClusterTest, RefusesAnInvalidId) {
  for (const char* path :
       {"/v1/who/", "/v1/who/x", "/v1/who/1/2", "/v1/who/99999999999999999999"}) {
    EXPECT_EQ(Ask(path)->status, 400) << path;
  }
  EXPECT_EQ(cluster_.asked, "");
  cluster_.word.trouble = Invalid("no id of this layout");
  EXPECT_EQ(Ask("/v1/who/-1")->status, 400);
}

TEST_F(HttpClusterTest, RefusesUnknownPathsMethodsAndParameters) {
  EXPECT_FALSE(Ask("/v1/audits"));
  EXPECT_FALSE(Ask("/v1/who"));
  EXPECT_EQ(Ask("/v1/audit", HttpVerb::kPost)->status, 405);
  EXPECT_EQ(Ask("/v1/tags", HttpVerb::kGet, "127.0.0.1", "all=1")->status, 400);
  EXPECT_EQ(cluster_.asked, "");
}

TEST_F(HttpClusterTest, RefusesForeignHostNames) {
  cluster_.Say("{\"faults\":[]}", Milliseconds(0));
  for (const char* path : {"/v1/audit", "/v1/tags", "/v1/who/1"}) {
    EXPECT_EQ(Ask(path, HttpVerb::kGet, "firn-1.example:7610")->status, 200) << path;
    EXPECT_EQ(Ask(path, HttpVerb::kGet, "evil.example")->status, 403) << path;
  }
  EXPECT_EQ(cluster_.asked, "audit tags 1 ") << "a foreign host name caused a read";
}

}  // namespace
}  // namespace firn::front
