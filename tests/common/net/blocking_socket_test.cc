#include "common/net/blocking_socket.h"

#include <array>
#include <string>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/cat.h"

namespace firn {
namespace {

// A peer on loopback that accepts only when the test requests it. Until then, the kernel has
// completed the connection.
class Listener {
 public:
  Listener() : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const any = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(bind(socket_, any, size), 0);
    EXPECT_EQ(listen(socket_, 1), 0);
    EXPECT_EQ(getsockname(socket_, any, &size), 0);
    endpoint_ = {"127.0.0.1", ntohs(address.sin_port)};
  }
  ~Listener() { Close(); }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  void Close() {
    if (socket_ >= 0) close(socket_);
    socket_ = -1;
  }
  int Accept() const { return accept(socket_, nullptr, nullptr); }
  const Endpoint& endpoint() const { return endpoint_; }

 private:
  int socket_;
  Endpoint endpoint_;
};

TEST(BlockingSocketTest, ExchangesBytesUntilThePeerCloses) {
  const Listener listener;
  auto connected = BlockingSocket::Connect(listener.endpoint(), Milliseconds(10'000));
  ASSERT_TRUE(connected.ok()) << connected.status();
  BlockingSocket socket = std::move(connected).value();
  const int peer = listener.Accept();
  ASSERT_EQ(socket.Send("question"), Status());
  std::array<char, 64> bytes{};
  EXPECT_EQ(recv(peer, bytes.data(), bytes.size(), 0), 8);
  ASSERT_EQ(send(peer, "answer", 6, MSG_NOSIGNAL), 6);
  EXPECT_EQ(socket.Receive(bytes.data(), 4).value_or(0), 4u);
  EXPECT_EQ(socket.Receive(bytes.data(), bytes.size()).value_or(0), 2u);
  close(peer);
  const Status closed = socket.Receive(bytes.data(), bytes.size()).status();
  EXPECT_EQ(closed, Unavailable("the server closed the connection"));
  Status sent;
  for (int i = 0; i < 1'000 && sent.ok(); ++i) sent = socket.Send("more");
  EXPECT_EQ(sent.code(), Code::kUnavailable) << "and no SIGPIPE";
}

TEST(BlockingSocketTest, EndsEveryWaitAtTheTimeLimit) {
  const Listener listener;
  auto socket = BlockingSocket::Connect(listener.endpoint(), Milliseconds(50));
  ASSERT_TRUE(socket.ok()) << socket.status();
  std::array<char, 64> bytes{};
  EXPECT_EQ(socket->Receive(bytes.data(), bytes.size()).status(), Unavailable("timed out"));
  EXPECT_EQ(socket->Send(std::string(64 << 20, 'x')), Unavailable("timed out"));
}

TEST(BlockingSocketTest, NamesTheEndpointThatRefuses) {
  Listener listener;
  listener.Close();
  const Status refused =
      BlockingSocket::Connect(listener.endpoint(), Milliseconds(10'000)).status();
  EXPECT_EQ(refused, Unavailable(Cat(listener.endpoint().ToString(), ": Connection refused")));
}

}  // namespace
}  // namespace firn
