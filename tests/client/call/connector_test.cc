// Tests connections to one of several addresses of this machine.

#include "client/call/connector.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/steady_timer.hpp>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/fleet/address_book.h"
#include "common/net/address.h"
#include "tests/client/call/black_hole.h"
#include "tests/client/fake_server.h"

namespace firn::client {
namespace {

constexpr Micros kLong{60'000'000};

Address Numeric(const std::string& endpoint) { return NumericAddress(*Endpoint::Parse(endpoint)); }

class ConnectorTest : public testing::Test {
 protected:
  Connector::Result Connect(std::vector<Address> addresses, Micros within = kLong) {
    std::optional<Connector::Result> got;
    const auto connector = std::make_shared<Connector>(io_, fds_);
    connector->Start(std::move(addresses), within,
                     [&](Connector::Result result) { got = std::move(result); });
    io_.restart();
    while (!got && io_.run_one_for(kLong) > 0) continue;
    connector->Stop();
    io_.run();
    return got ? std::move(*got) : Connector::Result();
  }
  void Drop(Connector::Result& result) {
    if (result.socket != nullptr) CloseSocket(*result.socket, fds_);
  }

  boost::asio::io_context io_;
  CloseOnFork fds_;
  FakeServer server_;
  const Address good_ = Numeric(server_.address());
};

TEST_F(ConnectorTest, TriesTheNextAddressAtOnceAfterARefusal) {
  const std::string port = server_.address().substr(server_.address().find(':'));
  const Address deaf = Numeric("127.0.0.2" + port);
  Connector::Result result = Connect({deaf, good_});
  ASSERT_NE(result.socket, nullptr);
  EXPECT_EQ(result.address, good_);
  EXPECT_EQ(result.led_nowhere, std::vector<Address>{deaf});
  Drop(result);
}

TEST_F(ConnectorTest, TriesTheNextAddressInParallelIfOneIsSilent) {
  const BlackHole hole;
  Connector::Result result = Connect({Numeric(hole.address()), good_});
  ASSERT_NE(result.socket, nullptr);
  EXPECT_EQ(result.led_nowhere, std::vector<Address>{Numeric(hole.address())});
  Drop(result);
}

TEST_F(ConnectorTest, ReportsTheErrorIfNoAddressAccepts) {
  server_.Down();
  const Connector::Result result = Connect({good_});
  EXPECT_EQ(result.socket, nullptr);
  EXPECT_EQ(result.error, boost::asio::error::connection_refused);
  EXPECT_FALSE(result.own_fault);
  EXPECT_NE(Connect({}).error, boost::system::error_code());
}

TEST_F(ConnectorTest, ReportsThatThisProcessHasNoDescriptor) {
  // The first connection opens the event loop's own descriptors.
  Connector::Result usual = Connect({good_});
  Drop(usual);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int next = dup(0);
  close(next);
  const rlimit none{static_cast<rlim_t>(next), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const Connector::Result result = Connect({good_, good_});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_EQ(result.socket, nullptr);
  EXPECT_TRUE(result.own_fault) << result.error.message();
  EXPECT_TRUE(result.led_nowhere.empty()) << "the addresses are as good as before";
}

TEST_F(ConnectorTest, ReportsNothingAfterStop) {
  const BlackHole hole;
  bool told = false;
  const auto connector = std::make_shared<Connector>(io_, fds_);
  connector->Start({Numeric(hole.address()), good_}, kLong,
                   [&](Connector::Result) { told = true; });
  connector->Stop();
  io_.run();
  EXPECT_FALSE(told);
}

// A listener that accepts no connection before TakeConnections. The kernel's second try then
// succeeds.
class SlowListener {
 public:
  SlowListener() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in any{};
    any.sin_family = AF_INET;
    socklen_t size = sizeof any;
    bind(listener_, reinterpret_cast<sockaddr*>(&any), size);
    getsockname(listener_, reinterpret_cast<sockaddr*>(&any), &size);
    port_ = ntohs(any.sin_port);
    listen(listener_, 0);
    for (int i = 0; i < 4; ++i) {
      fillers_.push_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      any.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      connect(fillers_.back(), reinterpret_cast<sockaddr*>(&any), sizeof any);
    }
  }
  ~SlowListener() {
    for (const int fd : fillers_) close(fd);
    close(listener_);
  }
  void TakeConnections() { listen(listener_, 128); }
  Address address() const { return Numeric("127.0.0.1:" + std::to_string(port_)); }

 private:
  const int listener_;
  int port_ = 0;
  std::vector<int> fillers_;
};

TEST_F(ConnectorTest, UsesASlowAddressWhileOthersAreTriedInParallel) {
  SlowListener slow;
  const BlackHole hole, another;
  // By then, attempts at the next addresses have started.
  boost::asio::steady_timer later(io_, std::chrono::milliseconds(600));
  later.async_wait([&](const boost::system::error_code&) { slow.TakeConnections(); });
  Connector::Result result =
      Connect({slow.address(), Numeric(hole.address()), Numeric(another.address())});
  ASSERT_NE(result.socket, nullptr) << result.error.message();
  EXPECT_EQ(result.address, slow.address());
  EXPECT_TRUE(result.led_nowhere.empty()) << "of those that were begun later nothing is known";
  Drop(result);
}

// --- order of addresses -------------------------------------------------------------------------

TEST(AddressBookTest, SpreadsConnectionsOverAllGoodAddresses) {
  const Address a = Numeric("10.0.0.1:1"), b = Numeric("10.0.0.2:1"), c = Numeric("10.0.0.3:1");
  AddressBook book;
  EXPECT_TRUE(book.empty());
  EXPECT_TRUE(book.Learn({a, b, c}));
  EXPECT_FALSE(book.Learn({c, b, a})) << "the same";
  std::vector<Address> first;
  for (int i = 0; i < 6; ++i) first.push_back(book.InTurn()[0]);
  for (const Address& one : {a, b, c}) {
    EXPECT_EQ(std::count(first.begin(), first.end(), one), 2);
  }
}

TEST(AddressBookTest, TriesFailedAddressesLast) {
  const Address a = Numeric("10.0.0.1:1"), b = Numeric("10.0.0.2:1"), c = Numeric("10.0.0.3:1");
  AddressBook book;
  book.Learn({a, b, c});
  book.LedNowhere(b);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(book.InTurn().back(), b);
  EXPECT_FALSE(book.Learn({a, b, c}));
  EXPECT_EQ(book.InTurn().back(), b) << "the name says nothing new of it";
  book.Led(b);
  EXPECT_TRUE(book.Learn({a, b}));
  EXPECT_EQ(book.InTurn().size(), 2u) << "the name has lost one";
}

}  // namespace
}  // namespace firn::client
