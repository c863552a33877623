// Damaged requests of every kind, each on its own connection, to a real firn-server of the release
// build: it must keep running, serve a good client in between, and use no more memory.
//
//     FIRN_FUZZ_REQUESTS=10000000 build/release/bin/socket_fuzz_test

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/time/entropy.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/request_kinds.h"
#include "tests/server/program/running_server.h"
#include "tests/support/fuzz/fuzz_mutator.h"
#include "tests/support/process.h"
#include "tests/support/seed.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn::front {
namespace {

constexpr size_t kAtOnce = 32;      // connections
constexpr int64_t kShort = 60'000;  // requests, unless the environment sets a number
constexpr int64_t kParts = 10;      // after the first of which memory must not grow
constexpr int64_t kGrowthKibMax =
    4096;  // permitted variation by the allocator and short-lived buffers

int64_t RequestsWanted() {
  const char* const said = std::getenv("FIRN_FUZZ_REQUESTS");
  return said == nullptr ? kShort : std::max<int64_t>(std::atoll(said), kParts);
}

// Damaged requests in flight, each on a connection that is shut down after it. So the server has
// seen all of a request when it closes the connection.
class Senders {
 public:
  explicit Senders(uint16_t port) : port_(port) { polled_.reserve(kAtOnce); }
  ~Senders() {
    for (const pollfd& one : polled_) close(one.fd);
  }

  // Returns false if the server does not accept the connection, or stops responding.
  bool Send(std::string_view request, uint32_t from) {
    while (polled_.size() >= kAtOnce) {
      if (!AwaitEnds()) return false;
    }
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return false;
    polled_.push_back({fd, POLLIN, 0});
    // From one of loopback's 16 million addresses: a port cannot be reused for a while.
    const int later = 1;  // the port is chosen on connect, and may be in use at another address
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &later, sizeof later);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(0x7f000001 + from % 0xfffff0);
    if (bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
    address.sin_port = htons(port_);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return false;
    send(fd, request.data(), request.size(), MSG_NOSIGNAL);  // the server may have closed already
    shutdown(fd, SHUT_WR);
    return true;
  }

  // Waits until none is in flight.
  bool Finish() {
    while (!polled_.empty()) {
      if (!AwaitEnds()) return false;
    }
    return true;
  }

 private:
  // Waits for events, and removes the connections that have ended, if any.
  bool AwaitEnds() {
    if (poll(polled_.data(), polled_.size(), static_cast<int>(kPatience.count())) <= 0)
      return false;
    std::erase_if(polled_, [](const pollfd& one) {
      if (one.revents == 0) return false;
      char some[64 * 1024];
      ssize_t got = 0;
      while ((got = recv(one.fd, some, sizeof some, MSG_DONTWAIT)) > 0) {
      }
      if (got < 0 && errno == EAGAIN) return false;
      close(one.fd);
      return true;
    });
    return true;
  }

  const uint16_t port_;
  std::vector<pollfd> polled_;
};

class SocketFuzzTest : public testing::Test {
 protected:
  void Start(std::vector<std::string> flags = {}) {
    flags.emplace_back("--layout=time:41 machine:4 sequence:18");
    server_ = std::make_unique<RunningServer>(dir_ / "state", std::move(flags));
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  }
  void TearDown() override {
    if (!server_) return;
    server_->process().Signal(SIGTERM);
    EXPECT_EQ(server_->process().Wait(kPatience), 0) << server_->log();
  }

  // `is_served` makes a call as a good client does.
  template <typename GoodClient>
  void Fuzz(std::vector<std::string> corpus, int64_t requests, GoodClient is_served) {
    const uint64_t seed = TestSeed();
    SCOPED_TRACE(SeedText(seed));
    SeededEntropy entropy(seed);
    FuzzMutator mutator(std::move(corpus), entropy);
    Senders senders(static_cast<uint16_t>(server_->port()));
    const int64_t start = server_->ResidentKib();
    int64_t warm = 0;
    for (int64_t part = 0; part < kParts; ++part) {
      for (int64_t i = 0; i < requests / kParts; ++i) {
        ASSERT_TRUE(senders.Send(mutator.Next(), static_cast<uint32_t>(entropy.Next())))
            << strerror(errno) << server_->log();
      }
      ASSERT_TRUE(senders.Finish()) << server_->log();
      ASSERT_TRUE(is_served()) << server_->log();
      if (part == 0) warm = server_->ResidentKib();
    }
    const int64_t end = server_->ResidentKib();
    std::printf("%lld requests: resident %lld KiB at first, %lld after a tenth, %lld at the end\n",
                static_cast<long long>(requests), static_cast<long long>(start),
                static_cast<long long>(warm), static_cast<long long>(end));
    EXPECT_LT(end, warm + kGrowthKibMax);
  }

  TempDir dir_;
  std::unique_ptr<RunningServer> server_;
};

TEST_F(SocketFuzzTest, SurvivesRandomThriftAndHttp) {
  ASSERT_NO_FATAL_FAILURE(Start());
  Fuzz(KindsOfRequests(), RequestsWanted(), [&] { return server_->Get("/genid").status == 200; });
}

TEST_F(SocketFuzzTest, SurvivesRandomTlsRecords) {
  TlsAuthority authority("fuzz");
  authority.Sign("server");
  ASSERT_NO_FATAL_FAILURE(Start(
      {"--tls_cert=" + authority.File("server.crt"), "--tls_key=" + authority.File("server.key")}));
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> client(SSL_CTX_new(TLS_client_method()),
                                                                 SSL_CTX_free);
  std::vector<std::string> corpus{front::ClientHello(TLS1_2_VERSION),
                                  front::ClientHello(TLS1_3_VERSION)};
  // A handshake costs a thousand times as much as refusing it.
  Fuzz(std::move(corpus), RequestsWanted() / 10, [&] {
    RawPeer peer(static_cast<uint16_t>(server_->port()), "127.0.0.1", client.get());
    peer.Send("GET /genid HTTP/1.0\r\n\r\n");
    return peer.ReceiveAll().starts_with("HTTP/1.1 200 ");
  });
}

}  // namespace
}  // namespace firn::front
