// Every limit of the front door, set by its flag and met from outside.

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/server/program/running_server.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

using std::string_literals::operator""s;

constexpr Milliseconds kPatience{60'000};

class LimitsTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags) {
    flags.push_back("--io_threads=1");
    server_ = std::make_unique<RunningServer>(dir_ / "state", std::move(flags));
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }
  void TearDown() override {
    server_->process().Signal(SIGTERM);
    EXPECT_EQ(server_->process().Wait(kPatience), 0) << server_->log();
  }

  uint16_t Port() const { return static_cast<uint16_t>(server_->port()); }
  int64_t Metric(const std::string& name, const std::string& labels = "") const {
    return server_->Metric("firn_" + name + "{door=\"public\"" + labels + "}");
  }
  int64_t Closed(const std::string& cause) const {
    return Metric("connections_closed_total", ",cause=\"" + cause + "\"");
  }
  bool CountsClosed(const std::string& cause, int64_t times) const {
    return Eventually(kPatience, [&] { return Closed(cause) >= times; });
  }

  // Whether a peer that sends this is thrown out, and counted under the cause.
  testing::AssertionResult ThrowsOut(const std::string& bytes, const std::string& cause) const {
    const int64_t before = Closed(cause);
    RawPeer peer(Port());
    if (peer.Send(bytes) && !peer.SeesClose()) {
      return testing::AssertionFailure() << "is still connected";
    }
    if (CountsClosed(cause, before + 1)) return testing::AssertionSuccess();
    return testing::AssertionFailure() << "is not counted as " << cause;
  }
  // Whether a peer that sends this gets an answer, and stays.
  bool Serves(const std::string& bytes) const {
    RawPeer peer(Port());
    return peer.Send(bytes) && peer.Receive(8).size() == 8;
  }
  // How a request by HTTP is answered, and the connection closed.
  std::string Answer(const std::string& request) const {
    RawPeer peer(Port());
    peer.Send(request);
    return peer.ReceiveAll().substr(0, 13);
  }

  // getId with a field that the contract does not know, a list of so many small numbers.
  static std::string WithList(size_t items) {
    const std::string list =
        "\x0f\0\x63\x03\0\0\0"s + static_cast<char>(items) + std::string(items, '\1');
    return ThriftCalls::WithLength("\x80\1\0\1\0\0\0\5getId\0\0\0\1"s + list + '\0');
  }
  static std::string Many(int count, const std::string& request) {
    std::string all;
    for (int i = 0; i < count; ++i) all += request;
    return all;
  }

  TempDir dir_;
  std::unique_ptr<RunningServer> server_;
  ThriftCalls calls_;
};

TEST_F(LimitsTest, OfOneRequest) {
  Start({"--frame_bytes_max=2000", "--string_bytes_max=64", "--container_items_max=4",
         "--http_header_bytes_max=1024", "--http_body_bytes_max=2048"});
  EXPECT_TRUE(Serves(calls_.GetId(std::string(64, 'x'))));
  EXPECT_TRUE(ThrowsOut(calls_.GetId(std::string(65, 'x')), "bad_frame"));
  EXPECT_TRUE(ThrowsOut(ThriftCalls::WithLength("\x80\1\0\1"s + std::string(1997, 'x')),
                        "frame_too_large"));
  EXPECT_TRUE(Serves(WithList(4)));
  EXPECT_TRUE(ThrowsOut(WithList(5), "bad_frame"));

  const std::string get = "GET /genid HTTP/1.0\r\nHost: ", post = "POST /genid HTTP/1.0\r\n";
  EXPECT_EQ(Answer(get + std::string(900, 'x') + "\r\n\r\n"), "HTTP/1.1 200 ");
  EXPECT_EQ(Answer(get + std::string(1100, 'x') + "\r\n\r\n"), "HTTP/1.1 431 ");
  EXPECT_EQ(Answer(post + "Content-Length: 2049\r\n\r\n"), "HTTP/1.1 413 ");
  EXPECT_TRUE(CountsClosed("http_too_large", 2));
}

TEST_F(LimitsTest, OfOneConnection) {
  Start({"--requests_per_turn_max=2", "--output_waiting_bytes_max=4096", "--half_request_ms=500",
         "--idle_ms=1000"});
  RawPeer busy(Port());
  ASSERT_TRUE(busy.Send(Many(20, calls_.GetId("default"))));
  EXPECT_EQ(busy.Receive(20 * 33).size(), 20u * 33) << "all are answered, some turns later";
  EXPECT_GE(Metric("turns_yielded_total"), 5);
  EXPECT_TRUE(busy.SeesClose()) << "of the idle one";
  EXPECT_TRUE(CountsClosed("idle", 1));
  EXPECT_TRUE(ThrowsOut(calls_.GetId("default").substr(0, 9), "half_request"));

  RawPeer deaf(Port());
  deaf.ReadSlowly();
  const auto ask = [](wire::IdServiceClient& client) { client.send_getIds("default", 50'000); };
  deaf.Send(Many(100, calls_.Frame(ask)));
  EXPECT_TRUE(Eventually(kPatience, [&] { return Metric("output_paused_total") > 0; }));
  EXPECT_TRUE(CountsClosed("unread", 1));
}

TEST_F(LimitsTest, OfAllConnections) {
  Start({"--connections_max=3"});
  std::deque<RawPeer> peers;
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(peers.emplace_back(Port()).Send(calls_.GetId("default")));
    ASSERT_EQ(peers.back().Receive(33).size(), 33u);
  }
  EXPECT_TRUE(ThrowsOut(calls_.GetId("default"), "too_many"));
  EXPECT_TRUE(peers[0].Send(calls_.GetId("default")));
  EXPECT_EQ(peers[0].Receive(33).size(), 33u) << "whoever is in stays";
}

}  // namespace
}  // namespace firn::front
