// The server's cost of a peer in each phase of a connection, for each byte in either direction:
// memory and processor time. If one phase cost far more than the others, a peer could stop a server
// with little effort.

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <openssl/ssl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "common/time/clock.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/program/running_server.h"
#include "tests/support/control_group.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn::front {
namespace {

using std::string_literals::operator""s;

#ifdef __SANITIZE_ADDRESS__
constexpr int64_t kSanitized = 3;  // blocks have red zones, and freed ones are kept
#else
constexpr int64_t kSanitized = 1;
#endif

// The packets that open and close a connection.
constexpr size_t kConnectionBytes = 200;
// The bytes of a handshake, in both directions.
constexpr size_t kHandshakeBytes = 1'500;
constexpr int kOutlier = 100;

using Peers = std::deque<RawPeer>;

class PeerCostTest : public testing::Test {
 protected:
  // Descriptors for thousands of peers, at both ends.
  static void SetUpTestSuite() {
    rlimit descriptors{};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_cur = std::min<rlim_t>(descriptors.rlim_max, 24'000);
    setrlimit(RLIMIT_NOFILE, &descriptors);
  }

  void Start(bool tls, std::vector<std::string> flags = {}, std::vector<std::string> wrapper = {}) {
    flags.insert(flags.begin(), {"--half_request_ms=600000", "--io_threads=2"});
    if (tls) {
      authority_.Sign("server");
      flags.push_back("--tls_cert=" + authority_.File("server.crt"));
      flags.push_back("--tls_key=" + authority_.File("server.key"));
    }
    server_.reset();
    server_ = std::make_unique<RunningServer>(dir_ / std::to_string(++starts_), flags, wrapper);
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }

  uint16_t Port() const { return static_cast<uint16_t>(server_->port()); }
  RawPeer& Join(Peers& peers, bool tls = false) const {
    return peers.emplace_back(Port(), "127.0.0.2", tls ? client_.get() : nullptr);
  }
  bool GoodClientIsServed(bool tls) const {
    RawPeer good(Port(), "127.0.0.1", tls ? client_.get() : nullptr);
    return good.Send("GET /v1/ids/default HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n") &&
           good.Receive(12) == "HTTP/1.1 200";
  }
  int64_t Accepted() const {
    return server_->Metric("firn_connections_accepted_total{door=\"public\"}");
  }
  // Memory of the server once it has freed what it used to start.
  int64_t SettledKib() const {
    int64_t before = 0, now = server_->ResidentKib();
    EXPECT_TRUE(Eventually(kPatience, [&] {
      SleepFor(Milliseconds(100));
      before = std::exchange(now, server_->ResidentKib());
      return std::abs(now - before) < 100;
    }));
    return now;
  }
  // Processor time that the server's threads have used, in microseconds.
  int64_t Used() const {
    int64_t used = 0;
    const std::string tasks = "/proc/" + std::to_string(server_->process().pid()) + "/task";
    for (const auto& task : std::filesystem::directory_iterator(tasks)) {
      int64_t ns = 0;
      std::ifstream(task.path() / "schedstat") >> ns;
      used += ns / 1'000;
    }
    return used;
  }

  // A request that waits is retried 200 times a second, without being parsed.
  void ExpectCheapWait() const {
    const int64_t before = Used();
    SleepFor(Milliseconds(1000));
    const int64_t waited = Used() - before;
    std::cout << "waiting for one second: " << waited << " us\n";
    EXPECT_LT(waited, kSanitized * 100'000);
  }

  // Slow readers from `good_address` are served, although peers at 127.0.0.2 read nothing until the
  // server closes one of them.
  void ReadSlowlyBesideUnread(const char* good_address) {
    constexpr size_t kGood = 5, kPart = 4'000'000;
    constexpr int kUnread = 12, kMore = 8, kFull = 2'000'000;
    ASSERT_NO_FATAL_FAILURE(Start(false, {"--output_total_bytes_max=38000000", "--io_threads=1",
                                          "--layout=time:41 machine:1 sequence:21"}));
    // Several calls, since the kernel holds the first answers. Those of the good peers are larger.
    const auto asks = [](const std::string& ids) {
      const std::string ask = "*3\r\n$8\r\nFIRN.IDS\r\n$7\r\ndefault\r\n$" +
                              std::to_string(ids.size()) + "\r\n" + ids + "\r\n";
      return ask + ask + ask + ask;
    };
    Peers good, bad;
    const auto join_bad = [&] {
      Join(bad).ReadSlowly();
      bad.back().Send(asks("60000"));
    };
    for (size_t i = 0; i < kGood; ++i) {
      good.emplace_back(Port(), good_address).ReadSlowly(65'536);
      ASSERT_TRUE(good.back().Send(asks("100000") + "*1\r\n$4\r\nQUIT\r\n"));
    }
    for (int i = 0; i < kUnread; ++i) join_bad();
    ASSERT_TRUE(Eventually(kPatience, [this] {
      return server_->Metric("firn_connection_buffer_bytes{door=\"public\"}") >
             (int64_t{kGood} + kUnread) * kFull;
    }));
    // Now the good peers read, enough for the kernel to report progress.
    for (RawPeer& peer : good) EXPECT_EQ(peer.Receive(kPart).size(), kPart);
    for (int i = 0; i < kMore; ++i) join_bad();
    EXPECT_TRUE(Eventually(kPatience, [this] {
      return server_->Metric("firn_connections_closed_total{door=\"public\",cause=\"unread\"}") > 0;
    }));
    for (RawPeer& peer : good) EXPECT_TRUE(peer.ReceiveAll().ends_with("+OK\r\n"));
  }

  TempDir dir_;
  int starts_ = 0;
  TlsAuthority authority_{"ours"};
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> client_{SSL_CTX_new(TLS_client_method()),
                                                                  SSL_CTX_free};
  std::optional<ControlGroup> group_;  // outlives the server
  std::unique_ptr<RunningServer> server_;
};

struct Phase {
  std::string name;
  bool tls;     // the server's port uses TLS
  bool agreed;  // the peer completes a handshake
  std::string sent;
  size_t answer = 0;       // bytes
  bool reads = false;      // the peer reads the answer
  int outlier = kOutlier;  // bytes of memory for each byte
  bool few_ids = false;    // the server issues two ids a second, and the requests wait
  bool login = false;      // the server requires one
};

std::vector<Phase> Phases() {
  constexpr size_t kIdBytes = 26;
  const std::string ping = "*1\r\n$4\r\nPING\r\n", hello = ClientHello();
  const std::string json = "{\"count\":1" + std::string(65'000, ' ') + "}";
  return {
      {"idle after a request", false, false, ping, 7, true},  // the reference for the others
      {"silent", false, false, ""},
      {.name = "before a login",
       .tls = false,
       .agreed = false,
       .sent = "*3\r\n$4\r\nAUTH\r\n$16000\r\n",
       .login = true},
      {"an incomplete HTTP header", false, false, "POST /v1/ids/default HTTP/1.1\r\nHost: x\r\n"},
      {"an incomplete Thrift frame", false, false, "\0\0\xff\xff\x80\1\0\1"s},
      {"does not read", false, false, "*3\r\n$8\r\nFIRN.IDS\r\n$7\r\ndefault\r\n$4\r\n9000\r\n",
       9'000 * kIdBytes},
      {.name = "64 KiB of JSON that wait",
       .tls = false,
       .agreed = false,
       .sent = "POST /v1/ids/default HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
               "Content-Length: " +
               std::to_string(json.size()) + "\r\n\r\n" + json,
       .outlier = 3,
       .few_ids = true},
      {"silent before TLS", true, false, ""},
      {"a large ClientHello", true, false, "\x16\x03\x01\x40\x00\x01\x01\xff\xb8\x03\x03"s},
      {"an incomplete ClientHello", true, false, hello.substr(0, hello.size() - 1)},
      {"an incomplete handshake", true, false, hello, 700},
      {"idle over TLS", true, true, ping, 7, true},
  };
}

TEST_F(PeerCostTest, NoPhaseCostsFarMoreThanItsBytes) {
  const std::string users = dir_ / "users";
  std::ofstream(users) << "alice:secret\n";
  ASSERT_EQ(chmod(users.c_str(), 0600), 0);
  double usual = 0;
  for (const Phase& phase : Phases()) {
    SCOPED_TRACE(phase.name);
    // With more, the parsing of waiting requests would be limited by the processor.
    const int peer_count = phase.few_ids ? 20 : 300;
    std::vector<std::string> flags;
    if (phase.few_ids) {
      flags = {"--layout=time:31s machine:10 sequence:1", "--issue_wait_ms=60000"};
    }
    if (phase.login) flags.push_back("--redis_auth_file=" + users);
    ASSERT_NO_FATAL_FAILURE(Start(phase.tls, flags));
    ASSERT_TRUE(GoodClientIsServed(phase.tls));
    const int64_t memory = SettledKib(), used = Used(), accepted = Accepted();
    Peers peers;
    for (int i = 0; i < peer_count; ++i) {
      RawPeer& peer = Join(peers, phase.agreed);
      if (phase.answer != 0 && !phase.reads) peer.ReadSlowly();
      peer.Send(phase.sent);
      if (phase.reads) {
        EXPECT_EQ(peer.Receive(phase.answer).size(), phase.answer);
      }
    }
    ASSERT_TRUE(Eventually(kPatience, [&] { return Accepted() >= accepted + peer_count; }));
    // Not always at once: the server may first issue ids for the peers.
    EXPECT_TRUE(phase.few_ids ||
                Eventually(kPatience, [&] { return GoodClientIsServed(phase.tls); }));
    const auto bytes = static_cast<double>(kConnectionBytes + (phase.agreed ? kHandshakeBytes : 0) +
                                           phase.sent.size() + phase.answer) *
                       peer_count;
    const double memory_each =
        1024.0 * static_cast<double>(server_->ResidentKib() - memory) / bytes;
    const double time_each = static_cast<double>(Used() - used) / bytes;
    if (usual == 0) usual = time_each;
    std::cout << phase.name << ": " << memory_each * bytes / peer_count << " bytes, "
              << time_each * bytes / peer_count << " us a connection\n";
    EXPECT_LT(memory_each, kSanitized * phase.outlier);
    EXPECT_LT(time_each, kOutlier * usual);
    if (phase.few_ids) ExpectCheapWait();
  }
}

// The memory limit is that of tools/package/k8s.yaml.
TEST_F(PeerCostTest, ServesDuringTenThousandIncompleteHandshakes) {
  constexpr size_t kPeers = 10'000;
  group_.emplace(512 << 20);
  if (!group_->ok()) GTEST_SKIP() << "no control group that limits memory can be made here";
  ASSERT_NO_FATAL_FAILURE(Start(true, {"--connections_per_peer_max=10000"}, group_->wrapper()));
  const std::string hello = ClientHello();
  Peers peers;
  for (size_t i = 0; i < kPeers; ++i) {
    Join(peers).Send(hello);
    if (i % 500 != 0) continue;
    ASSERT_TRUE(Eventually(kPatience, [&] { return GoodClientIsServed(true); }))
        << i << ", killed: " << group_->OomKills();
  }
  ASSERT_TRUE(Eventually(kPatience, [&] { return Accepted() >= int64_t{kPeers}; }));
  EXPECT_TRUE(Eventually(kPatience, [&] { return GoodClientIsServed(true); }));
  EXPECT_EQ(group_->OomKills(), 0);
  EXPECT_TRUE(Eventually(kPatience, [this] {
    return server_->Metric("firn_connection_buffer_bytes{door=\"public\"}") > 0;
  }));
}

TEST_F(PeerCostTest, ClosesThePeerThatDoesNotReadAndNoSlowReader) {
  ASSERT_NO_FATAL_FAILURE(ReadSlowlyBesideUnread("127.0.0.1"));
}

// The time without progress alone tells these connections apart.
TEST_F(PeerCostTest, ClosesOnlyTheUnreadConnectionsOfAnAddress) {
  ASSERT_NO_FATAL_FAILURE(ReadSlowlyBesideUnread("127.0.0.2"));
}

}  // namespace
}  // namespace firn::front
