#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <boost/asio/basic_stream_socket.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>

#include "client/call/io_thread.h"
#include "common/base/fork.h"
#include "common/net/address.h"
#include "common/time/micros.h"

namespace firn::client {

// Connects to one of several addresses by "happy eyeballs" (RFC 8305). If an address does not
// answer for a while, the next one is tried in parallel; if it fails, at once. The first connection
// wins. So a name whose first addresses are unreachable costs little time, and a name with many
// distant addresses is still reached.
//
// Used by one IO thread; its own operations keep it alive until they have ended.
class Connector final : public std::enable_shared_from_this<Connector> {
 public:
  using Executor = boost::asio::io_context::executor_type;
  using Protocol = boost::asio::generic::stream_protocol;
  using Socket = boost::asio::basic_stream_socket<Protocol, Executor>;

  // The outcome. Without a socket, the connection has failed, and `error` is the cause.
  struct Result {
    std::unique_ptr<Socket> socket{};
    Address address{};
    boost::system::error_code error{};
    bool own_fault = false;  // this process lacks descriptors or memory
    // Addresses that failed, or were tried before the winner and did not answer.
    std::vector<Address> led_nowhere{};
  };
  using Done = std::function<void(Result)>;

  Connector(boost::asio::io_context& io, CloseOnFork& fds);
  ~Connector() { Stop(); }

  // Call once. All addresses are started within `within`, the caller's timeout. `done` is called
  // once, later, unless Stop is called first.
  void Start(std::vector<Address> addresses, Micros within, Done done);
  void Stop();

 private:
  static constexpr Micros kStaggerMax{250'000};

  void BeginNext();
  bool OpenSocket(Socket& socket, int family);
  void OnConnected(size_t at, const boost::system::error_code& error);
  void Fail(const boost::system::error_code& error);
  void End(Result result);
  void Disconnect(std::unique_ptr<Socket>& socket);

  boost::asio::io_context& io_;
  CloseOnFork& fds_;
  IoThread::Timer next_timer_;
  Done done_;  // empty: it has ended
  std::vector<Address> addresses_;
  // One for each address tried so far; null: the connection has failed.
  std::vector<std::unique_ptr<Socket>> sockets_;
  Micros stagger_{0};
};

// Closes the socket, and removes it from the descriptors that a fork closes.
void CloseSocket(Connector::Socket& socket, CloseOnFork& fds);

}  // namespace firn::client
