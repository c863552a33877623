#include "client/call/connector.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <sys/socket.h>
#include <unistd.h>

namespace firn::client {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

// Returns whether the cause of the error is this process or machine, not the peer.
bool IsOwnFault(const error_code& error) {
  return error == error_code(EMFILE, boost::system::system_category()) ||
         error == error_code(ENFILE, boost::system::system_category()) ||
         error == error_code(ENOBUFS, boost::system::system_category()) ||
         error == error_code(ENOMEM, boost::system::system_category());
}

}  // namespace

void CloseSocket(Connector::Socket& socket, CloseOnFork& fds) {
  if (!socket.is_open()) return;
  error_code ignored;
  fds.Close(socket.native_handle(), [&] { socket.close(ignored); });
}

Connector::Connector(asio::io_context& io, CloseOnFork& fds)
    : io_(io), fds_(fds), next_timer_(io.get_executor()) {}

void Connector::Start(std::vector<Address> addresses, Micros within, Done done) {
  addresses_ = std::move(addresses);
  sockets_.reserve(addresses_.size());
  done_ = std::move(done);
  stagger_ = std::min(kStaggerMax, within / static_cast<int64_t>(addresses_.size() + 1));
  // Immediate failures are reported later, too.
  asio::post(io_, [self = shared_from_this()] {
    if (!self->done_) return;
    if (self->addresses_.empty()) return self->Fail(asio::error::host_not_found);
    self->BeginNext();
  });
}

void Connector::Stop() {
  done_ = nullptr;
  next_timer_.cancel();
  for (auto& socket : sockets_) Disconnect(socket);
}

void Connector::Disconnect(std::unique_ptr<Socket>& socket) {
  if (socket == nullptr) return;
  CloseSocket(*socket, fds_);
  socket.reset();
}

// Opens the socket itself, since Asio's are inherited by programs that this process starts.
bool Connector::OpenSocket(Socket& socket, int family) {
  const int fd =
      fds_.Open([&] { return ::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0); });
  if (fd < 0) return false;
  error_code error;
  socket.assign(Protocol(family, 0), fd, error);
  if (error) {
    fds_.Close(fd, [fd] { ::close(fd); });
    errno = error.value();
    return false;
  }
  socket.set_option(asio::ip::tcp::no_delay(true), error);  // a Unix socket has no delay
  socket.non_blocking(true, error);
  return true;
}

void Connector::BeginNext() {
  const size_t mine = sockets_.size();
  const Address& address = addresses_[mine];
  const Protocol::endpoint endpoint(address.get(), address.length);
  sockets_.push_back(std::make_unique<Socket>(io_.get_executor()));
  Socket& socket = *sockets_[mine];
  if (!OpenSocket(socket, address.family())) {
    return OnConnected(mine, error_code(errno, boost::system::system_category()));
  }
  socket.async_connect(endpoint, [self = shared_from_this(), mine](const error_code& error) {
    if (self->done_ && self->sockets_[mine] != nullptr) self->OnConnected(mine, error);
  });
  if (sockets_.size() == addresses_.size()) return;
  next_timer_.expires_after(stagger_);
  next_timer_.async_wait([self = shared_from_this(), mine](const error_code& cancelled) {
    const bool last = self->sockets_.size() == mine + 1;
    if (!cancelled && self->done_ && last) self->BeginNext();
  });
}

void Connector::OnConnected(size_t at, const error_code& error) {
  if (!error) {
    Result won{.socket = std::move(sockets_[at]), .address = addresses_[at]};
    for (size_t i = 0; i < sockets_.size(); ++i) {
      const bool failed = i != at && sockets_[i] == nullptr;
      if (failed || i < at) won.led_nowhere.push_back(addresses_[i]);
    }
    return End(std::move(won));
  }
  Disconnect(sockets_[at]);
  // After a lack of descriptors or memory, the other addresses would fail, too.
  const bool more = sockets_.size() < addresses_.size() && !IsOwnFault(error);
  if (more) return BeginNext();
  const auto failed = [](const std::unique_ptr<Socket>& socket) { return socket == nullptr; };
  if (std::ranges::all_of(sockets_, failed)) Fail(error);
}

void Connector::Fail(const error_code& error) {
  Result failed{.error = error, .own_fault = IsOwnFault(error)};
  if (!failed.own_fault) failed.led_nowhere = addresses_;
  End(std::move(failed));
}

void Connector::End(Result result) {
  const Done done = std::exchange(done_, nullptr);
  Stop();
  done(std::move(result));
}

}  // namespace firn::client
