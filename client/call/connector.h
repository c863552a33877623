#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "common/base/fork.h"
#include "common/net/address.h"
#include "common/time/micros.h"

namespace firn::client {

// A connection to one of several addresses, as "happy eyeballs" (RFC 8305) make it: where one has
// not answered for a while the next is tried beside it, where one has failed at once, and whoever
// is first to be connected wins. So a name whose first addresses lead nowhere costs little, and one
// with many good but distant addresses is reached.
//
// Used by one IO thread; kept alive by its own operations until they have ended.
class Connector final : public std::enable_shared_from_this<Connector> {
 public:
  using Executor = boost::asio::io_context::executor_type;
  using Socket = boost::asio::basic_stream_socket<boost::asio::ip::tcp, Executor>;

  // What came of it. Without a socket nothing did, and `error` says why.
  struct Result {
    std::unique_ptr<Socket> socket{};
    Address address{};
    boost::system::error_code error{};
    bool own_fault = false;  // this process had no descriptor left, or no memory
    // Those that failed, or were begun before the winner and had not answered.
    std::vector<Address> led_nowhere{};
  };
  using Done = std::function<void(Result)>;

  Connector(boost::asio::io_context& io, CloseOnFork& fds);
  ~Connector() { Stop(); }

  // Call once. `within` is the time that whoever began this means to wait: all addresses are begun
  // in that time. `done` is called once, later, unless Stop comes first.
  void Start(std::vector<Address> addresses, Micros within, Done done);
  void Stop();

 private:
  using Timer = boost::asio::basic_waitable_timer<
      std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;
  static constexpr Micros kStaggerMax{250'000};

  struct Attempt {
    Address address;
    std::unique_ptr<Socket> socket;  // null: it has failed
  };

  void BeginNext();
  bool OpenSocket(Socket& socket, const boost::asio::ip::tcp& protocol);
  void OnConnected(size_t attempt, const boost::system::error_code& error);
  void Fail(const boost::system::error_code& error);
  void End(Result result);
  void Disconnect(std::unique_ptr<Socket>& socket);

  boost::asio::io_context& io_;
  CloseOnFork& fds_;
  Timer next_timer_;
  Done done_;  // empty: it is over
  std::vector<Address> addresses_;
  std::vector<Attempt> attempts_;  // of the first so many addresses
  size_t under_way_ = 0;
  Micros stagger_{0};
};

// Closes the socket and tells what is closed on a fork.
void CloseSocket(Connector::Socket& socket, CloseOnFork& fds);

}  // namespace firn::client
