// The list of servers, over Thrift and HTTP.

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "server/front/server_front.h"
#include "tests/server/front/form.h"
#include "tests/server/front/http/http_calls.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/json_of.h"

namespace firn::front {
namespace {

ListedServers SomeList(int64_t version) {
  return {.cluster_uuid = "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
          .application = "shop",
          .version = version,
          .servers = {{.address = "10.0.0.7:7609"},
                      {.address = "[::1]:7609",
                       .rack = 3,
                       .weight = 50,
                       .online = false,
                       .phase = ServerPhase::kOffline,
                       .tls = true}}};
}

wire::ServerEntry Entry(const ListedServer& listed) {
  wire::ServerEntry entry;
  entry.address = listed.address;
  entry.rack = static_cast<int32_t>(listed.rack);
  entry.weight = listed.weight;
  entry.online = listed.online;
  entry.state =
      listed.phase == ServerPhase::kOffline ? wire::ServerState::OFFLINE : wire::ServerState::READY;
  entry.tls = listed.tls;
  return entry;
}

class ThriftServersTest : public testing::TestWithParam<ThriftCoding> {
 protected:
  void SetUp() override {
    if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
  }
  void Show(const ListedServers& list, Milliseconds age = Milliseconds(0)) {
    issuing_.view.servers_ = {std::make_shared<ListedServers>(list), age};
  }
  wire::ServerList Ask(int64_t known_version = 0) {
    out_.Clear();
    DoorCall door;
    const std::string frame =
        calls_.Frame([&](wire::IdServiceClient& client) { client.send_servers(known_version); });
    Waiting waiting;
    const ServeStep step = ServeInForm(*protocol_, waiting, frame, door, out_, issuing_.slow->next);
    EXPECT_EQ(step.kind, ServeStep::Kind::kServed);
    EXPECT_EQ(step.bytes, frame.size());
    wire::ServerList list;
    calls_.Answer(out_.view()).recv_servers(list);
    return list;
  }

  Issuing issuing_;
  std::unique_ptr<Protocol> protocol_ =
      MakeThriftProtocol(GetParam(), issuing_.backend, issuing_.counters);
  OutBuffer out_;
  ThriftCalls calls_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Codings, ThriftServersTest,
                         testing::Values(ThriftCoding::kBinary, ThriftCoding::kCompact),
                         [](const auto& coding) {
                           return coding.param == ThriftCoding::kBinary ? "Binary" : "Compact";
                         });

TEST_P(ThriftServersTest, ReturnsEveryFieldOfEveryServer) {
  Show(SomeList(77), Milliseconds(1'234));
  for (int i = 0; i < 3; ++i) {
    const wire::ServerList list = Ask(76);
    EXPECT_EQ(list.cluster_uuid, "1b4e28ba-2fa1-11d2-883f-0016d3cca427");
    EXPECT_EQ(list.application, "shop");
    EXPECT_EQ(list.version, 77);
    EXPECT_EQ(list.age_ms, 1'234);
    EXPECT_EQ(list.ask_again_ms, 2'345);
    ASSERT_TRUE(list.__isset.servers);
    ASSERT_EQ(list.servers.size(), 2u);
    EXPECT_EQ(list.servers[0], Entry(SomeList(0).servers[0]));
    EXPECT_EQ(list.servers[1], Entry(SomeList(0).servers[1]));
  }
}

TEST_P(ThriftServersTest, OmitsAListThatTheCallerHas) {
  Show(SomeList(77));
  const wire::ServerList same = Ask(77);
  EXPECT_FALSE(same.__isset.servers);
  EXPECT_EQ(same.version, 77);
  EXPECT_EQ(same.ask_again_ms, 2'345) << "the fields after the list must still be read";
  EXPECT_TRUE(Ask(78).__isset.servers) << "the version of an older list, or of another cluster";
}

TEST_P(ThriftServersTest, EncodesAChangedListAgain) {
  Show(SomeList(77));
  EXPECT_EQ(Ask().servers.size(), 2u);
  ListedServers grown = SomeList(78);
  grown.servers.push_back({.address = "10.0.0.8:7609"});
  Show(grown);
  const wire::ServerList list = Ask(77);
  EXPECT_EQ(list.version, 78);
  ASSERT_EQ(list.servers.size(), 3u);
  EXPECT_EQ(list.servers[2], Entry(grown.servers[2]));
}

TEST_P(ThriftServersTest, RefusesUntilThereIsAList) {
  try {
    Ask();
    ADD_FAILURE() << "a list was returned";
  } catch (const wire::Refusal& refusal) {
    EXPECT_EQ(refusal.reason, wire::Reason::NOT_READY);
    EXPECT_TRUE(refusal.another_server_may_help);
  }
}

class HttpServersTest : public testing::Test {
 protected:
  void Show(const ListedServers& list) {
    issuing_.view.servers_ = {std::make_shared<ListedServers>(list), Milliseconds(1'234)};
  }
  HttpSide::Answer Ask(const std::string& fields = {}) {
    return http_.Raw("GET /v1/servers HTTP/1.1\r\nHost: x\r\n" + fields + "\r\n");
  }

  Issuing issuing_;
  HttpSide http_{issuing_};
};

TEST_F(HttpServersTest, ReturnsTheListAsJson) {
  Show(SomeList(77));
  for (int i = 0; i < 2; ++i) {
    const auto answer = Ask();
    EXPECT_EQ(answer.status(), 200);
    EXPECT_TRUE(answer.HasField("ETag: \"77\"")) << answer.head;
    EXPECT_TRUE(answer.HasField("Content-Type: application/json")) << answer.head;
    const auto expected = R"({"cluster_uuid": "1b4e28ba-2fa1-11d2-883f-0016d3cca427",
        "application": "shop", "version": 77, "age_ms": 1234, "ask_again_ms": 2345, "servers": [
        {"address": "10.0.0.7:7609", "rack": 0, "weight": 100, "online": true, "state": "READY",
         "tls": false},
        {"address": "[::1]:7609", "rack": 3, "weight": 50, "online": false, "state": "OFFLINE",
         "tls": true}]})";
    EXPECT_EQ(answer.json(), JsonOf(expected));
  }
}

TEST_F(HttpServersTest, SendsNoListToClientsThatHaveIt) {
  Show(SomeList(77));
  for (const char* tags : {"\"77\"", "W/\"77\"", "\"1\", \"77\"", "\"1\",\t W/\"77\" ", "*"}) {
    const auto answer = Ask(std::string("If-None-Match: ") + tags + "\r\n");
    EXPECT_EQ(answer.status(), 304) << tags;
    EXPECT_EQ(answer.body, "") << tags;
    EXPECT_EQ(answer.head.find("Content-Length"), std::string::npos) << answer.head;
    EXPECT_TRUE(answer.HasField("ETag: \"77\"")) << answer.head;
  }
  for (const char* tags : {"\"78\"", "77", "\"7\"", "\"777\"", "", ",", "\"77"}) {
    EXPECT_EQ(Ask(std::string("If-None-Match: ") + tags + "\r\n").status(), 200) << tags;
  }
  Show(SomeList(78));
  const auto fresh = Ask("If-None-Match: \"77\"\r\n");
  EXPECT_EQ(fresh.status(), 200);
  EXPECT_EQ(fresh.json().at("version"), 78);
}

TEST_F(HttpServersTest, RefusesUntilThereIsAList) {
  const auto answer = Ask();
  EXPECT_EQ(answer.status(), 503);
  EXPECT_EQ(answer.json().at("error").at("reason"), "NOT_READY");
  EXPECT_EQ(http_.Post("/v1/servers", "").status(), 405);
}

TEST(AskAgainTest, IsFiftyMillisecondsPerConnectionWithinAFifth) {
  SeededEntropy entropy(7);
  const struct {
    uint64_t connections;
    int64_t middle_ms;
  } table[] = {{0, 2'000},   {1, 2'000},      {40, 2'000},      {41, 2'050},
               {100, 5'000}, {1'200, 60'000}, {10'000, 60'000}, {UINT64_MAX, 60'000}};
  for (const auto& row : table) {
    int64_t least = INT64_MAX, most = 0;
    for (int i = 0; i < 1'000; ++i) {
      const int64_t ms = AskAgain(row.connections, entropy).count();
      least = std::min(least, ms);
      most = std::max(most, ms);
    }
    EXPECT_GE(least, row.middle_ms * 4 / 5) << row.connections;
    EXPECT_LE(most, row.middle_ms * 6 / 5) << row.connections;
    EXPECT_LT(least, row.middle_ms * 9 / 10) << row.connections << ": not spread";
    EXPECT_GT(most, row.middle_ms * 11 / 10) << row.connections << ": not spread";
  }
}

}  // namespace
}  // namespace firn::front
