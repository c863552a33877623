#include "server/front/net/io_loop.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>

#include <boost/asio/post.hpp>
#include <fcntl.h>
#include <sys/socket.h>

#include "common/base/cat.h"
#include "common/net/endpoint.h"
#include "server/front/net/descriptors.h"
#include "server/front/net/unix_socket.h"

namespace firn::front {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds kSweepEvery{100};
constexpr milliseconds kAcceptAgain{100};
constexpr int64_t kParkUsMin = 20;
constexpr int64_t kParkUsMax = 5'000;

// Other threads may use the scheduler, but not sockets and timers.
constexpr int kOneThreadForIo = BOOST_ASIO_CONCURRENCY_HINT_UNSAFE_IO;

Status Failed(const char* what, const error_code& error) {
  return Unavailable(std::string(what) + ": " + error.message());
}

// A connection that has been unserved for this long is closed before others are considered.
constexpr int64_t kSlowMs = 1'000;

asio::ip::tcp::endpoint TcpOf(const asio::generic::stream_protocol::endpoint& address) {
  asio::ip::tcp::endpoint tcp;
  tcp.resize(address.size());
  std::memcpy(tcp.data(), address.data(), address.size());
  return tcp;
}

}  // namespace

IoLoop::IoLoop(const LoopSetting& setting, ProtocolSet protocols)
    : setting_(setting),
      share_{setting.limits, setting.clock, std::move(protocols)},
      io_(kOneThreadForIo),
      park_timer_(io_.get_executor()),
      sweep_timer_(io_.get_executor()) {
  share_.log = setting.log;
}

IoLoop::~IoLoop() = default;

Status IoLoop::Listen(asio::ip::tcp::endpoint& at, bool share) {
  return Open(listeners_.emplace_back(io_, accept_slots_[0]).acceptor, at, share);
}

Status IoLoop::ListenUnix(int fd) {
  Listener& listener = listeners_.emplace_back(io_, accept_slots_[1]);
  listener.is_unix = true;
  error_code error;
  const int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) error.assign(errno, boost::system::system_category());
  if (!error) listener.acceptor.assign({AF_UNIX, 0}, copy, error);
  return error ? Failed("copy of the listening socket", error) : Status();
}

Status IoLoop::Probe(asio::ip::tcp::endpoint& at) {
  asio::io_context io(1);
  Acceptor acceptor(io.get_executor());
  return Open(acceptor, at, false);
}

Status IoLoop::Open(Acceptor& acceptor, asio::ip::tcp::endpoint& at, bool share) {
  error_code error;
  acceptor.open(at.protocol(), error);
  if (error) return Failed("socket", error);
  acceptor.set_option(asio::socket_base::reuse_address(true), error);
  const int on = 1;
  if (share) setsockopt(acceptor.native_handle(), SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
  acceptor.bind(at, error);
  if (error) return Failed("bind", error);
  acceptor.listen(asio::socket_base::max_listen_connections, error);
  if (error) return Failed("listen", error);
  const Acceptor::endpoint_type bound = acceptor.local_endpoint(error);
  if (error) return Failed("getsockname", error);
  at = TcpOf(bound);
  return {};
}

void IoLoop::Run() {
  share_.coarse_ms = share_.exact_ms();
  NoteTurn();
  for (Listener& listener : listeners_) Accept(listener);
  SweepSoon();
  io_.run();
  connections_.clear();
}

void IoLoop::Drain(int64_t patience_ms) {
  asio::post(io_, [this, patience_ms] {
    error_code ignored;
    for (Listener& listener : listeners_) {
      listener.acceptor.close(ignored);
      listener.retry.cancel();
    }
    drain_until_ms_ = share_.exact_ms() + patience_ms;
    for (auto& connection : connections_) connection->CloseWhenIdle();
    StopIfDrained();
  });
}

void IoLoop::WakeParked(const void* what) {
  asio::post(io_, [this, what] {
    for (Connection* connection : parked_) {
      if (connection != nullptr && connection->WaitsFor(what)) connection->listed.again_at_us = 0;
    }
    ResumeDue();
  });
}

void IoLoop::Accept(Listener& listener) {
  listener.acceptor.async_accept(listener.accepted, listener.from,
                                 InSlot(listener.slot, [this, &listener](const error_code& error) {
                                   OnAccepted(listener, error);
                                 }));
}

void IoLoop::OnAccepted(Listener& listener, const error_code& error) {
  if (!listener.acceptor.is_open()) return;
  if (error == asio::error::connection_aborted) return Accept(listener);
  bool go_on = !error;
  if (!error) {
    go_on = LeavesSpare(listener.accepted.native_handle(), setting_.limits.spare_descriptors);
    const uint64_t peer = Adopt(listener);
    go_on = go_on || MakeRoom(peer);
  }
  return go_on ? Accept(listener) : AcceptLater(listener);
}

// Out of descriptors or memory: connections wait in the backlog until there is room.
void IoLoop::AcceptLater(Listener& listener) {
  share_.counters.accept_failed.Add(1);
  listener.retry.expires_after(kAcceptAgain);
  listener.retry.async_wait([this, &listener](const error_code& stopped) {
    if (stopped || !listener.acceptor.is_open()) return;
    const int wanted = 1 + setting_.limits.spare_descriptors;
    const bool room = CanOpen(listener.acceptor.native_handle(), wanted);
    return room || MakeRoom(std::nullopt) ? Accept(listener) : AcceptLater(listener);
  });
}

IoLoop::PeerName IoLoop::NameOf(Listener& listener) {
  if (listener.is_unix) {
    const uid_t user = UserOfPeer(listener.accepted.native_handle());
    return {Places::PeerOf(user), Cat("unix:uid=", user)};
  }
  const asio::ip::tcp::endpoint from = TcpOf(listener.from);
  return {Places::PeerAt(from.address()),
          Endpoint{from.address().to_string(), from.port()}.ToString()};
}

uint64_t IoLoop::Adopt(Listener& listener) {
  share_.counters.accepted.Add(1);
  const PeerName peer = NameOf(listener);
  StreamSocket socket = std::move(listener.accepted);  // closed on every return below
  const auto closes = [&](CloseCause cause) {
    share_.counters.closed_by(cause).Add(1);
    return peer.key;
  };
  std::optional<Places::Place> place = setting_.places.Take(peer.key);
  if (!place) return closes(CloseCause::kTooManyOfPeer);
  while (setting_.places.overfull() && MakeRoom(peer.key)) {
  }
  if (setting_.places.overfull() && !place->Reserve()) return closes(CloseCause::kTooMany);
  ConnectionHost& host = *this;
  try {
    connections_.push_back(std::make_unique<Connection>(
        host, share_,
        listener.is_unix ? MakePlainWire(std::move(socket)) : setting_.wrap(std::move(socket)),
        peer.text));
  } catch (const std::bad_alloc&) {
    return closes(CloseCause::kNoMemory);
  }
  Connection& connection = *connections_.back();
  connection.listed.index = connections_.size() - 1;
  connection.listed.place = std::move(*place);
  connection.listed.peer = peer.key;
  connection.Start();
  return peer.key;
}

// Closes the connection of a peer that is slow to send its request, or else one of the peer with
// most connections. A connection that becomes unserved counts from the next tick of the coarse
// clock on. So the list is made once per tick, however many connections arrive in it.
bool IoLoop::MakeRoom(std::optional<uint64_t> peer) {
  if (closable_at_ms_ != share_.coarse_ms) FindClosable();
  const size_t has = peer ? setting_.places.Of(*peer) : 0;
  for (; !closable_.empty(); closable_.pop_back()) {
    const Closable& next = closable_.back();
    if (next.connection == nullptr) continue;
    const Connection::Rank rank = next.connection->rank();
    const bool unserved = rank == Connection::kUnserved;
    if (rank != next.rank) {  // it was served meanwhile, or is parked
      next.connection->listed.closable.reset();
      continue;
    }
    const bool others = peer && next.of_peer > has;
    const bool equal = unserved && (!peer || next.peer == *peer || next.of_peer + 1 >= has);
    if (!next.before_others && !others && !equal) return false;
    Connection& closed = *next.connection;
    closable_.pop_back();
    closed.listed.closable.reset();
    closed.listed.place = {};
    if (!unserved) closed.Close(CloseCause::kTooManyOfPeer);
    if (unserved) closed.CloseUnserved();
    return true;
  }
  return false;
}

void IoLoop::FindClosable() {
  closable_at_ms_ = share_.coarse_ms;
  closable_.clear();
  // From the back, so that of several that began in the same tick, the oldest is closed first, too.
  for (size_t i = connections_.size(); i-- > 0;) {
    Connection& connection = *connections_[i];
    connection.listed.closable.reset();
    const auto unserved = connection.unserved_since_ms();
    const bool just_begun = unserved == share_.coarse_ms;  // its request may be arriving
    if (just_begun || connection.of_server() || connection.rank() == Connection::kGone) continue;
    const int64_t since = unserved.value_or(connection.still_since_ms());
    const bool is_first = unserved || connection.keeps_place_of_server();
    closable_.push_back({.connection = &connection,
                         .peer = connection.listed.peer,
                         .since_ms = since,
                         .rank = connection.rank(),
                         .before_others = is_first && share_.coarse_ms - since >= kSlowMs});
  }
  RankForClosing(closable_, [this](uint64_t peer, uint64_t sum) {
    return std::max<uint64_t>(setting_.places.Of(peer), sum);
  });
  for (size_t i = 0; i < closable_.size(); ++i) closable_[i].connection->listed.closable = i;
}

// Each peer may send a request of the maximum size and leave answers unread; the limit for all
// peers is less than the sum of that.
void IoLoop::LimitMemory() {
  const auto sum = [this] {
    size_t taken = 0;
    for (const auto& connection : connections_) taken += connection->memory();
    return taken;
  };
  size_t taken = sum();
  if (taken > setting_.buffer_bytes_max) {
    for (const auto& connection : connections_) connection->Relax();
    taken = sum();
  }
  std::vector<Closable> closable;
  for (size_t i = taken > setting_.buffer_bytes_max ? connections_.size() : 0; i-- > 0;) {
    Connection& connection = *connections_[i];
    if (connection.memory() == 0) continue;
    closable.push_back({.connection = &connection,
                        .peer = connection.listed.peer,
                        .since_ms = connection.still_since_ms(),
                        .cost = connection.memory()});
  }
  RankForMemory(closable, share_.coarse_ms);
  for (; taken > setting_.buffer_bytes_max && !closable.empty(); closable.pop_back()) {
    taken -= closable.back().connection->memory();
    closable.back().connection->CloseForMemory();
  }
  share_.counters.buffer_bytes.Set(taken);
}

void IoLoop::Remove(Connection& connection) {
  const auto forget = [&](bool listed, std::vector<Connection*>& list) {
    if (!listed) return;
    std::replace(list.begin(), list.end(), &connection, static_cast<Connection*>(nullptr));
    std::replace(scratch_.begin(), scratch_.end(), &connection, static_cast<Connection*>(nullptr));
  };
  forget(connection.listed.to_read, to_read_);
  forget(connection.listed.to_resume, to_resume_);
  forget(connection.listed.parked, parked_);
  if (connection.listed.closable) closable_[*connection.listed.closable].connection = nullptr;
  const size_t index = connection.listed.index;
  std::swap(connections_[index], connections_.back());
  connections_[index]->listed.index = index;
  connections_.pop_back();
  StopIfDrained();
}

void IoLoop::ReadLater(Connection& connection) {
  if (connection.listed.to_read) return;
  connection.listed.to_read = true;
  to_read_.push_back(&connection);
  EndTurnSoon();
}

void IoLoop::ResumeLater(Connection& connection) {
  if (connection.listed.to_resume) return;
  connection.listed.to_resume = true;
  to_resume_.push_back(&connection);
  EndTurnSoon();
}

void IoLoop::EndTurnSoon() {
  if (turn_ends_) return;
  turn_ends_ = true;
  asio::post(io_.get_executor(), InSlot(turn_slot_, [this] { EndTurn(); }));
}

void IoLoop::EndTurn() {
  turn_ends_ = false;
  WorkThrough(to_read_, &Connection::Listed::to_read, &Connection::ReadMore);
  WorkThrough(to_resume_, &Connection::Listed::to_resume, &Connection::Resume);
}

void IoLoop::WorkThrough(std::vector<Connection*>& list, bool Connection::Listed::*listed,
                         void (Connection::*verb)()) {
  scratch_.swap(list);
  for (size_t i = 0; i < scratch_.size(); ++i) {
    if (Connection* connection = scratch_[i]) {
      connection->listed.*listed = false;
      (connection->*verb)();
    }
  }
  scratch_.clear();
}

void IoLoop::Park(Connection& connection, int64_t again_us) {
  if (!connection.listed.parked) {
    connection.listed.parked = true;
    parked_.push_back(&connection);
  }
  connection.listed.again_at_us = share_.exact_us() + std::clamp(again_us, kParkUsMin, kParkUsMax);
  ResumeDueAt(connection.listed.again_at_us);
}

void IoLoop::ResumeDueAt(int64_t at_us) {
  if (park_wake_us_ && *park_wake_us_ <= at_us) return;
  park_wake_us_ = at_us;
  park_timer_.expires_after(microseconds(std::max(at_us - share_.exact_us(), kParkUsMin)));
  park_timer_.async_wait(InSlot(park_slot_, [this](const error_code& replaced) {
    if (replaced) return;
    park_wake_us_.reset();
    ResumeDue();
  }));
}

// Only due calls: calls that wait for an unreachable store are not retried when another tag has
// ids.
void IoLoop::ResumeDue() {
  const int64_t now = share_.exact_us();
  std::erase_if(parked_, [&](Connection* connection) {
    const bool due = connection != nullptr && connection->listed.again_at_us <= now;
    if (due) due_.push_back(connection);
    return due || connection == nullptr;
  });
  WorkThrough(due_, &Connection::Listed::parked, &Connection::Resume);
  for (const Connection* connection : parked_) {
    if (connection != nullptr) ResumeDueAt(connection->listed.again_at_us);
  }
}

void IoLoop::SweepSoon() {
  sweep_timer_.expires_after(kSweepEvery);
  sweep_timer_.async_wait(InSlot(sweep_slot_, [this](const error_code& error) {
    if (!error) Sweep();
  }));
}

void IoLoop::Sweep() {
  share_.coarse_ms = share_.exact_ms();
  NoteTurn();
  const bool overdue = drain_until_ms_ && share_.coarse_ms >= *drain_until_ms_;
  // From the back: a removed connection is replaced by one that was visited already.
  for (size_t i = connections_.size(); i-- > 0;) {
    if (overdue) {
      connections_[i]->Close(CloseCause::kShutdown);
    } else {
      connections_[i]->CheckDeadlines();
    }
  }
  LimitMemory();
  SweepSoon();
}

void IoLoop::StopIfDrained() {
  if (drain_until_ms_ && connections_.empty()) io_.stop();
}

}  // namespace firn::front
