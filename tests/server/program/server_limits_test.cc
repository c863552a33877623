// Every limit of the front that is a flag, set on the real program and reached over a socket. Each
// has a distinct value, so that a flag that sets the wrong limit is detected.

#include <algorithm>
#include <deque>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

class ServerLimitsTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags, std::vector<std::string> wrapper = {}) {
    flags.push_back("--io_threads=1");
    server_ = std::make_unique<RunningServer>(dir_ / "state", std::move(flags), std::move(wrapper));
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }

  uint16_t Port() const { return static_cast<uint16_t>(server_->port()); }

  int64_t Metric(const std::string& series) const { return server_->Metric(series); }
  int64_t Closed(const std::string& cause) const {
    return Metric("firn_connections_closed_total{door=\"public\",cause=\"" + cause + "\"}");
  }
  bool BecomesClosed(const std::string& cause, int64_t before) const {
    return Eventually(kPatience, [&] { return Closed(cause) > before; });
  }

  size_t OpenDescriptors() const {
    const std::filesystem::directory_iterator all("/proc/" +
                                                  std::to_string(server_->process().pid()) + "/fd");
    return static_cast<size_t>(std::distance(begin(all), end(all)));
  }

  // Returns the status of an answer after which the connection closes.
  int Status(const std::string& request) const {
    RawPeer peer(Port());
    peer.Send(request);
    const std::string answer = peer.ReceiveAll();
    return answer.starts_with("HTTP/1.1 ") ? std::stoi(answer.substr(9)) : 0;
  }

  TempDir dir_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(ServerLimitsTest, EnforcesLimitsOfOneConnectionAndOfAll) {
  ASSERT_NO_FATAL_FAILURE(Start(
      {"--connections_max=4", "--half_request_ms=700", "--idle_ms=4000", "--list_ids_max=10000"}));
  EXPECT_EQ(server_->Get("/v1/ids/default?count=10000").status, 200);
  EXPECT_EQ(server_->Get("/v1/ids/default?count=10001").status, 400);
  {
    // More than a turn has, by the bytes of their answers.
    std::string many;
    for (int i = 0; i < 20; ++i) {
      many += "GET /v1/ids/default?count=1000 HTTP/1.1\r\nHost: x\r\n\r\n";
    }
    EXPECT_EQ(Status(many + "GET /genid HTTP/1.0\r\n\r\n"), 200);
    EXPECT_GT(Metric("firn_turns_yielded_total{door=\"public\"}"), 0);
  }
  {
    std::string many;
    for (int i = 0; i < 400; ++i) {
      many += "GET /v1/ids/default?count=10000 HTTP/1.1\r\nHost: x\r\n\r\n";
    }
    RawPeer peer(Port());
    peer.ReadSlowly();
    peer.Send(many);
    EXPECT_TRUE(BecomesClosed("unread", 0));
    EXPECT_GT(Metric("firn_output_paused_total{door=\"public\"}"), 0);
  }
  {
    RawPeer peer(Port());
    peer.Send("GET /ge");
    EXPECT_TRUE(BecomesClosed("half_request", 0));
    EXPECT_EQ(Closed("idle"), 0);
  }
  std::deque<RawPeer> peers;
  ThriftCalls calls;
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(peers.emplace_back(Port()).Send(calls.GetId("default")));
    EXPECT_EQ(peers.back().Receive(4).size(), 4u);
  }
  RawPeer fifth(Port());
  EXPECT_TRUE(fifth.SeesClose());
  EXPECT_TRUE(BecomesClosed("too_many", 0));
  EXPECT_TRUE(BecomesClosed("idle", 0));
}

// Without descriptors to spare a server reaches neither its registry nor its stores.
TEST_F(ServerLimitsTest, KeepsDescriptorsSpareAmongSilentPeers) {
  constexpr size_t kLimit = 150, kSpare = 16;
  ASSERT_NO_FATAL_FAILURE(Start({}, {"prlimit", "--nofile=" + std::to_string(kLimit)}));
  std::deque<RawPeer> silent;
  size_t most = 0;
  for (int round = 0; round < 40; ++round) {
    for (int i = 0; i < 10; ++i) silent.emplace_back(Port());
    EXPECT_EQ(server_->Get("/genid").status, 200) << round << server_->log();
    most = std::max(most, OpenDescriptors());
  }
  EXPECT_TRUE(BecomesClosed("idle", 0)) << "the limit was not met";
  EXPECT_LE(most, kLimit - kSpare / 2);  // its own files come and go
}

TEST_F(ServerLimitsTest, EnforcesLimitsOfWaitingCalls) {
  // Two ids a second, and a timeout longer than five of them take, even while the first second of a
  // new claim is used up.
  ASSERT_NO_FATAL_FAILURE(
      Start({"--layout=time:31s machine:10 sequence:1", "--issue_wait_ms=60000"}));
  ThriftCalls calls;
  std::string five;
  for (int i = 0; i < 5; ++i) five += calls.GetId("default");
  const size_t answers = size_t{5} * 33;  // refusals are counted below
  RawPeer peer(Port());
  ASSERT_TRUE(peer.Send(five));
  EXPECT_EQ(peer.Receive(answers).size(), answers);
  EXPECT_GT(Metric("firn_requests_parked_total{door=\"public\"}"), 0);
  for (const char* reason : {"NOT_READY", "OVERLOADED"}) {
    EXPECT_LE(Metric("firn_refusals_total{reason=\"" + std::string(reason) + "\"}"), 0) << reason;
  }
}

TEST_F(ServerLimitsTest, AnswersBrowsersAndRedisClientsAsItsFlagsSay) {
  const auto status = [&](const std::string& host, const std::string& fields = {}) {
    return Status("POST /v1/ids/default HTTP/1.1\r\nHost: " + host +
                  "\r\nConnection: close\r\nContent-Length: 0\r\n" + fields + "\r\n");
  };
  const auto increment = [&] {
    RawPeer peer(Port());
    peer.Send("*2\r\n$4\r\nINCR\r\n$7\r\ndefault\r\n");
    return peer.Receive(1);
  };
  ASSERT_NO_FATAL_FAILURE(Start({}));
  EXPECT_EQ(status("any.example"), 200);
  EXPECT_EQ(status("any.example", "Origin: http://other.example\r\n"), 403);
  EXPECT_EQ(increment(), "-") << "JavaScript would round it";
  server_.reset();
  ASSERT_NO_FATAL_FAILURE(Start({"--http_hosts=ids.example,app.example", "--redis_incr_64bit"}));
  EXPECT_EQ(status("ids.example"), 200);
  EXPECT_EQ(status("any.example"), 403);
  EXPECT_EQ(status("ids.example", "Origin: https://app.example\r\n"), 200);
  EXPECT_EQ(increment(), ":");
}

}  // namespace
}  // namespace firn::front
