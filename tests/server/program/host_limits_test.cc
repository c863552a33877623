// The real program on a host with low limits: either the server names the limit that is too low and
// ends, or it serves and ends on a signal. Only in plain builds: the sanitizers' own needs would
// hide the server's.

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <deque>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "tests/server/front/form.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/server/program/running_server.h"
#include "tests/support/control_group.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

constexpr int64_t kMiB = 1 << 20;

class HostLimitsTest : public testing::Test {
 protected:
  void SetUp() override {
    const Finished made = RunFirn({"init", "--brand-new", "--force", "--workers=2", registry_});
    ASSERT_EQ(made.exit_code, 0) << made.out << made.err;
  }

  // Expects the server to serve, or to name this limit and end.
  void ServesOrNames(const std::string& limit, std::vector<std::string> wrapper) {
    const std::string state = dir_ / ("state" + std::to_string(++started_));
    RunningServer server(state, {registry_, "--io_threads=2"}, std::move(wrapper));
    const bool ready = server.BecomesReady();
    ++(ready ? served_ : refused_);
    if (ready) {
      // Threads that read the registry for the console start with the first request for it.
      EXPECT_NE(server.Admin("/v1/audit").status, 0) << server.log();
      EXPECT_EQ(server.Get("/v1/ids/default?count=10000").status, 200) << server.log();
      server.process().Signal(SIGTERM);
    }
    EXPECT_EQ(server.process().Wait(kPatience), ready ? 0 : 1) << server.log();
    if (ready) return;
    for (const std::string& words :
         {std::string("the host denies this process resources"), limit}) {
      EXPECT_NE(server.log().find(words), std::string::npos) << server.log();
    }
  }
  void ExpectBoth() const {
    EXPECT_GT(served_, 0) << "every limit was too low";
    EXPECT_GT(refused_, 0) << "every limit was high enough";
  }

  TempDir dir_;
  const std::string registry_ = "--registry=dir://" + (dir_ / "registry");
  int started_ = 0, served_ = 0, refused_ = 0;
};

TEST_F(HostLimitsTest, NamesAThreadLimitOfItsControlGroup) {
  for (const int threads : {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 16, 20}) {
    SCOPED_TRACE(threads);
    const ControlGroup group("pids", "pids.max", "pids.max", threads);
    if (!group.ok()) GTEST_SKIP() << "no control group that limits processes can be made here";
    ServesOrNames("pids.max", group.wrapper());
  }
  ExpectBoth();
}

TEST_F(HostLimitsTest, ServesWithLittleMemoryInItsControlGroup) {
  const ControlGroup group(48 * kMiB);
  if (!group.ok()) GTEST_SKIP() << "no control group that limits memory can be made here";
  ServesOrNames("memory.max", group.wrapper());
  EXPECT_EQ(served_, 1);
}

TEST_F(HostLimitsTest, NamesAMemoryLimitThatIsTooLow) {
  struct {
    const char *option, *name;
    int64_t least;  // with less address space its libraries cannot be loaded
  } const limits[] = {{"--as=", "(ulimit -v)", 32}, {"--data=", "(ulimit -d)", 8}};
  for (const auto& [option, name, least] : limits) {
    for (int64_t mib = least; mib <= 400; mib += mib < 128 ? 12 : 40) {
      SCOPED_TRACE(option + std::to_string(mib) + " MiB");
      ServesOrNames(name, {"prlimit", option + std::to_string(mib * kMiB)});
    }
    ExpectBoth();
    served_ = refused_ = 0;
  }
}

TEST_F(HostLimitsTest, ReturnsTheMemoryOfManyTlsConnections) {
  constexpr int64_t kPeers = 1'000, kMibInKib = 1024;
  const front::FormTls& tls = front::TlsOfForm();
  RunningServer server(dir_ / "state", {registry_, "--io_threads=2", "--tls_cert=" + tls.cert,
                                        "--tls_key=" + tls.key});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const int64_t before = server.ResidentKib();
  std::deque<front::RawPeer> peers;
  front::ThriftCalls calls;
  const auto join_more = [&] {
    for (int i = 0; i < kPeers; ++i) {
      auto& peer =
          peers.emplace_back(static_cast<uint16_t>(server.port()), "127.0.0.1", tls.client);
      ASSERT_TRUE(peer.Send(calls.GetId("default")));
      ASSERT_EQ(peer.Receive(4).size(), 4u);
    }
  };
  ASSERT_NO_FATAL_FAILURE(join_more());
  const int64_t first = server.ResidentKib();  // includes memory that the first connections load
                                               // once
  ASSERT_NO_FATAL_FAILURE(join_more());
  const auto above = [&](int64_t from) { return server.ResidentKib() - from; };
  EXPECT_TRUE(Eventually(kPatience, [&] { return above(first) <= 20 * kPeers; })) << above(first);
  const int64_t most = server.ResidentKib();
  peers.clear();
  // `before` may still include memory that only the start used.
  EXPECT_TRUE(Eventually(
      kPatience, [&] { return above(before) <= 12 * kMibInKib && above(most) < -10 * kMibInKib; }))
      << above(before) << ", " << above(most);
}

// Peers that send one large request, read its large answer, and are then idle; with TLS or without.
class IdlePeersTest : public testing::TestWithParam<bool> {
 protected:
  // tools/release-check takes 10,000.
  static int64_t PeerCount() {
    const char* const said = std::getenv("FIRN_IDLE_PEERS");
    return said == nullptr ? 1'000 : std::atoll(said);
  }
  static void PermitDescriptors(int64_t peers) {
    rlimit descriptors{};
    getrlimit(RLIMIT_NOFILE, &descriptors);
    descriptors.rlim_cur = std::max(
        descriptors.rlim_cur, std::min(descriptors.rlim_max, static_cast<rlim_t>(peers) + 500));
    setrlimit(RLIMIT_NOFILE, &descriptors);
  }
  // A frame that is nearly as large as permitted; it requests 10,000 ids, which are 80 KB.
  static std::string LargeRequest() {
    const std::string call = front::ThriftCalls().Frame(
        [](wire::IdServiceClient& client) { client.send_getIds("default", 10'000); });
    return front::ThriftCalls::WithLength(call.substr(4) + std::string(60'000, '\0'));
  }
  // Whether the peer gets all ids. Retries after a refusal, which a busy machine can cause.
  static bool GetsAll(front::RawPeer& peer, const std::string& request) {
    return Eventually(kPatience, [&] {
      if (!peer.Send(request)) return false;
      size_t length = 0;
      for (const char byte : peer.Receive(4)) length = length * 256 + static_cast<uint8_t>(byte);
      return peer.Receive(length).size() == length && length > 80'000;
    });
  }
};

INSTANTIATE_TEST_SUITE_P(Tls, IdlePeersTest, testing::Bool());

TEST_P(IdlePeersTest, HoldNoBuffersOfTheirLargeRequests) {
  const int64_t peers_wanted = PeerCount();
  PermitDescriptors(peers_wanted);
  const front::FormTls& tls = front::TlsOfForm();
  SSL_CTX* const client = GetParam() ? tls.client : nullptr;
  std::vector<std::string> flags{"--io_threads=2", "--layout=time:41 machine:4 sequence:18",
                                 "--idle_ms=3600000", "--connections_per_peer_max=10000"};
  if (client != nullptr) {
    SSL_CTX_set_mode(client, SSL_MODE_RELEASE_BUFFERS);
    flags.insert(flags.end(), {"--tls_cert=" + tls.cert, "--tls_key=" + tls.key});
  }
  TempDir dir;
  RunningServer server(dir / "state", flags);
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const int64_t before = server.ResidentKib();
  const std::string request = LargeRequest();
  std::deque<front::RawPeer> peers;
  for (int64_t i = 0; i < peers_wanted; ++i) {
    auto& peer = peers.emplace_back(static_cast<uint16_t>(server.port()), "127.0.0.1", client);
    ASSERT_TRUE(GetsAll(peer, request)) << i;
  }
  const auto above = [&] { return server.ResidentKib() - before; };
  const int64_t permitted = 8 * 1024 + peers_wanted * (client != nullptr ? 19 : 7);
  EXPECT_TRUE(Eventually(kPatience, [&] { return above() <= permitted; })) << above() << " KiB";
  EXPECT_EQ(server.Metric("firn_connections{door=\"public\"}"), peers_wanted);
  peers.clear();
  // Of each closed connection, up to 4 KiB remain in pages that others still use.
  const int64_t left = 36 * 1024 + peers_wanted * 4;
  EXPECT_TRUE(Eventually(kPatience, [&] { return server.ResidentKib() <= left; }))
      << server.ResidentKib() << " KiB";
}

}  // namespace
}  // namespace firn
