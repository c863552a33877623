// The Redis protocol on the public port of a server's front.

#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/json/json.h"
#include "server/front/server_front.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/redis/redis_side.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

class NoControl final : public ServerControl {
 public:
  Status GoOffline() override { return {}; }
  Status GoOnline() override { return {}; }
};

class RedisDoorTest : public testing::Test {
 protected:
  void Open(ServerFrontOptions options = {}) {
    options.admin.emplace();
    front_.emplace(std::move(options), issuing_.issuer, issuing_.view, control_, SystemClock());
    ASSERT_TRUE(front_->Start().ok());
  }
  void WriteLogins(const std::string& text) {
    std::ofstream(dir_ / "logins") << text;
    chmod((dir_ / "logins").c_str(), 0600);
  }
  static std::string Ask(RawPeer& peer, const std::string& request, size_t answer) {
    EXPECT_TRUE(peer.Send(request));
    return peer.Receive(answer);
  }

  const TempDir dir_;
  Issuing issuing_;
  NoControl control_;
  std::optional<ServerFront> front_;
};

TEST_F(RedisDoorTest, ServesRedisBesideTheOtherProtocols) {
  Open();
  RawPeer redis(front_->port()), http(front_->port());
  EXPECT_EQ(Ask(redis, Resp({"INCR", "slow"}), 4), ":1\r\n");
  EXPECT_EQ(Ask(http, "GET /api/snowflake/get/slow HTTP/1.1\r\nHost: x\r\n\r\n", 12),
            "HTTP/1.1 200");
  EXPECT_EQ(Ask(redis, Resp({"INCR", "slow"}), 4), ":3\r\n");
  EXPECT_EQ(front_->sums().issued.at("slow"), 3u);
  // A request is counted once its answer has been written.
  for (const std::string line :
       {"firn_request_seconds_count{door=\"public\",protocol=\"redis\"} 2\n",
        "firn_protocol_connections{door=\"public\",protocol=\"redis\"} 1\n"}) {
    const auto shown = [&] { return front_->Metrics().find(line) != std::string::npos; };
    EXPECT_TRUE(Eventually(kPatience, shown)) << line << front_->Metrics();
  }
}

// The values of each protocol in /v1/status, as lines of /metrics.
std::vector<std::string> AsMetrics(const Json& protocols) {
  std::vector<std::string> lines;
  for (const auto& one : protocols) {
    const std::string label = "protocol=\"" + one.at("protocol").text() + '"';
    lines.push_back("\nfirn_protocol_calls_total{" + label + "} " + JsonText(one.at("calls")) +
                    '\n');
    lines.push_back("\nfirn_protocol_connections{door=\"public\"," + label + "} " +
                    JsonText(one.at("connections")) + '\n');
    for (const auto& [reason, refused] : one.at("refused").members()) {
      lines.push_back("\nfirn_protocol_refusals_total{" + label + ",reason=\"" + reason + "\"} " +
                      JsonText(refused) + '\n');
    }
  }
  return lines;
}

TEST_F(RedisDoorTest, CountsCallsAndConnectionsByProtocolInStatusAndMetrics) {
  Open();
  RawPeer redis(front_->port()), idle(front_->port()), http(front_->port());
  EXPECT_EQ(Ask(idle, Resp({"PING"}), 7), "+PONG\r\n");
  EXPECT_EQ(Ask(redis, Resp({"INCR", "slow"}), 4), ":1\r\n");
  EXPECT_EQ(Ask(redis, Resp({"INCR", "nothing"}), 4), "-ERR");
  EXPECT_EQ(Ask(http, "GET /v1/ids/slow HTTP/1.1\r\nHost: x\r\n\r\n", 12), "HTTP/1.1 200");
  RawPeer admin(front_->admin_port());
  ASSERT_TRUE(
      admin.Send("GET /v1/status HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"));
  const std::string answer = admin.ReceiveAll();
  const auto protocols = JsonOf(answer.substr(answer.find("\r\n\r\n"))).at("protocols");
  ASSERT_EQ(protocols.size(), 3u) << protocols << " Dubbo is not enabled";
  EXPECT_EQ(protocols.at(0).at("protocol"), "thrift");
  EXPECT_EQ(protocols.at(0).at("connections"), 0);
  EXPECT_EQ(protocols.at(1).at("calls"), 1);
  EXPECT_EQ(protocols.at(1).at("connections"), 1) << "the admin port's is not counted";
  EXPECT_EQ(protocols.at(2).at("protocol"), "redis");
  EXPECT_EQ(protocols.at(2).at("calls"), 2);
  EXPECT_EQ(protocols.at(2).at("connections"), 2);
  EXPECT_EQ(protocols.at(2).at("refused").at("UNKNOWN_TAG"), 1);
  const std::string metrics = front_->Metrics();
  for (const std::string& line : AsMetrics(protocols)) {
    EXPECT_NE(metrics.find(line), std::string::npos) << line << metrics;
  }
}

TEST_F(RedisDoorTest, AnswersRedisWithAnErrorIfItIsNotServed) {
  ServerFrontOptions options;
  options.redis = false;
  Open(options);
  for (const uint16_t port : {front_->port(), front_->admin_port()}) {
    RawPeer peer(port);
    ASSERT_TRUE(peer.Send(Resp({"PING"})));
    EXPECT_EQ(peer.ReceiveAll(), "-ERR Redis is not served on this port\r\n");
  }
}

TEST_F(RedisDoorTest, ReloadsTheLogins) {
  WriteLogins("alice:old\n");
  ServerFrontOptions options;
  options.redis_auth_file = dir_ / "logins";
  Open(options);
  RawPeer peer(front_->port());
  EXPECT_EQ(Ask(peer, Resp({"AUTH", "alice", "old"}), 5), "+OK\r\n");
  WriteLogins("alice:new\n");
  ASSERT_TRUE(front_->Reload().faults.empty());
  RawPeer other(front_->port());
  EXPECT_EQ(Ask(other, Resp({"AUTH", "alice", "old"}), 10), "-WRONGPASS");
  WriteLogins("nonsense\n");
  const ReloadReport damaged = front_->Reload();
  ASSERT_EQ(damaged.faults.size(), 1u);
  EXPECT_NE(damaged.faults[0].find("--redis_auth_file"), std::string::npos) << damaged.faults[0];
  RawPeer third(front_->port());
  EXPECT_EQ(Ask(third, Resp({"AUTH", "alice", "new"}), 5), "+OK\r\n");
}

TEST_F(RedisDoorTest, DoesNotStartWithoutItsLogins) {
  ServerFrontOptions options;
  options.redis_auth_file = dir_ / "missing";
  ServerFront front(options, issuing_.issuer, issuing_.view, control_, SystemClock());
  const Status started = front.Start();
  EXPECT_EQ(started.code(), Code::kNotFound);
  EXPECT_NE(started.message().find("--redis_auth_file"), std::string::npos) << started.message();
}

TEST_F(RedisDoorTest, AnswersInOrderWhileACallWaits) {
  Open();
  issuing_.slow->waits = true;
  RawPeer peer(front_->port()), other(front_->port());
  ASSERT_TRUE(peer.Send(Resp({"ECHO", "a"}) + Resp({"INCR", "slow"}) + Resp({"ECHO", "b"})));
  EXPECT_EQ(peer.Receive(7), Bulk("a"));
  EXPECT_EQ(Ask(other, Resp({"PING"}), 7), "+PONG\r\n") << "others are served meanwhile";
  issuing_.slow->waits = false;
  EXPECT_EQ(peer.Receive(11), ":1\r\n" + Bulk("b"));
}

}  // namespace
}  // namespace firn::front
