#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/asio/basic_waitable_timer.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "server/front/net/connection.h"
#include "server/front/net/handler_slot.h"
#include "server/front/net/places.h"
#include "server/front/net/plain_wire.h"

namespace firn::front {

// Wraps an accepted socket: plain, or with encryption. Any thread.
using WrapSocket = std::function<std::unique_ptr<Wire>(StreamSocket)>;

// Settings and objects that the IO threads of one front door share.
struct LoopSetting {
  const Limits& limits;
  const Clock& clock;
  WrapSocket wrap;
  Places& places;           // of all threads
  size_t buffer_bytes_max;  // memory of this thread's connections
  const std::function<void(const std::string&)>& log;
};

// One IO thread: its own listening socket on the common port, perhaps a Unix socket that it shares
// with the other threads, its connections, and its protocols. All functions run inside Run(),
// unless stated otherwise.
//
// A turn is the work between two waits for the kernel. First the connections with new events are
// served one after another. Then those that were served are read again. Then those that have more
// requests than one turn serves continue.
class IoLoop final : private ConnectionHost {
 public:
  IoLoop(const LoopSetting& setting, ProtocolSet protocols);
  ~IoLoop();

  // Before Run: opens the socket. `share`: other loops listen on the same port. Fails if the
  // address is in use, or not of this machine. A port 0 in `at` is replaced by the real port.
  Status Listen(boost::asio::ip::tcp::endpoint& at, bool share);

  // Before Run: also accepts from this listening Unix socket. Keeps a duplicate of the descriptor.
  Status ListenUnix(int fd);

  // Ok if no socket listens at `at`, shared or not. A port 0 is replaced by a free port.
  static Status Probe(boost::asio::ip::tcp::endpoint& at);

  // Serves until Drain has finished. Called once, by the loop's own thread.
  void Run();

  // Any thread. Stops accepting, closes each connection when all its answers are sent, and all of
  // them after `patience_ms`. Then Run returns.
  void Drain(int64_t patience_ms);

  // Any thread: retries the parked calls that wait for this.
  void WakeParked(const void* what);

  // Any thread.
  const LoopCounters& counted() const { return share_.counters; }

 private:
  using Executor = boost::asio::io_context::executor_type;
  using Acceptor =
      boost::asio::basic_socket_acceptor<boost::asio::generic::stream_protocol, Executor>;
  using Timer = boost::asio::basic_waitable_timer<
      std::chrono::steady_clock, boost::asio::wait_traits<std::chrono::steady_clock>, Executor>;

  // A listening socket, and the connection that it accepts next.
  struct Listener {
    Listener(boost::asio::io_context& io, HandlerSlot& its_slot)
        : slot(its_slot),
          acceptor(io.get_executor()),
          accepted(io.get_executor()),
          retry(io.get_executor()) {}

    HandlerSlot& slot;  // outlives the loop's operations
    Acceptor acceptor;
    StreamSocket accepted;
    Acceptor::endpoint_type from{};
    Timer retry;
    bool is_unix = false;
  };
  // The peer of an accepted connection.
  struct PeerName {
    uint64_t key;      // for Places
    std::string text;  // for people
  };

  void ReadLater(Connection& connection) override;
  void ResumeLater(Connection& connection) override;
  void Park(Connection& connection, int64_t again_us) override;
  void Remove(Connection& connection) override;

  static Status Open(Acceptor& acceptor, boost::asio::ip::tcp::endpoint& at, bool share);
  static PeerName NameOf(Listener& listener);
  void Accept(Listener& listener);
  void OnAccepted(Listener& listener, const boost::system::error_code& error);
  void AcceptLater(Listener& listener);
  // Turns the accepted socket into a connection. Returns the peer.
  uint64_t Adopt(Listener& listener);
  // Closes a connection to make room for one of `peer`. Returns false if no peer has more
  // connections than this one, and every connection has been served or may be sending its request.
  // Without a peer, only unserved connections are closed.
  bool MakeRoom(std::optional<uint64_t> peer);
  void FindClosable();
  void LimitMemory();
  void EndTurnSoon();
  void EndTurn();
  // Calls `verb` of all connections on the list. Meanwhile connections may be added and removed.
  void WorkThrough(std::vector<Connection*>& list, bool Connection::Listed::*listed,
                   void (Connection::*verb)());
  void ResumeDue();
  void ResumeDueAt(int64_t at_us);
  void NoteTurn() { share_.counters.turned_ms.Set(static_cast<uint64_t>(share_.coarse_ms)); }
  void SweepSoon();
  void Sweep();
  void StopIfDrained();

  const LoopSetting setting_;
  IoShare share_;
  // Before the objects whose operations use them.
  std::array<HandlerSlot, 2> accept_slots_;
  HandlerSlot turn_slot_, park_slot_, sweep_slot_;
  boost::asio::io_context io_;
  std::deque<Listener> listeners_;  // the port's, then the Unix socket's
  Timer park_timer_, sweep_timer_;
  bool turn_ends_ = false;
  std::optional<int64_t> park_wake_us_;    // when the park timer fires
  std::optional<int64_t> drain_until_ms_;  // set once it is draining
  std::vector<Connection*> to_read_, to_resume_, parked_, due_, scratch_;
  std::vector<std::unique_ptr<Connection>> connections_;
  // The connections that may be closed for new ones, as of closable_at_ms_; the next to close is
  // last. Null: removed.
  std::vector<Closable> closable_;
  std::optional<int64_t> closable_at_ms_;
};

}  // namespace firn::front
