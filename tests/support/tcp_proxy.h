#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <string>
#include <thread>

#include "common/base/units.h"

namespace firn {

// A bad network between a client and a server on 127.0.0.1: listens on a port of its own, passes
// bytes on in both directions, and does to them what the test says. All verbs are thread-safe and
// act on what arrives from now on; a thread of its own does the work.
//
// Sharp edge: dropped bytes leave a connection that no protocol can go on with. Cut it.
class TcpProxy {
 public:
  static constexpr size_t kBufferedMax = 4 << 20;  // a direction that holds more reads no further

  explicit TcpProxy(int server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  int port() const { return port_; }

  // Swallows what the client says; the server hears nothing, and both think they are connected.
  void DropRequests(bool drop) { drop_requests_ = drop; }
  // Swallows what the server says: it does what it is asked, and nobody learns of it.
  void DropAnswers(bool drop) { drop_answers_ = drop; }
  // Keeps every byte back for so long, in either direction.
  void Delay(Milliseconds delay) { delay_ms_ = delay.count(); }
  // New connections go to another server.
  void Redirect(int server_port) { server_port_ = server_port; }
  // Closes every connection. New ones are taken.
  void Cut();
  // Closes every connection, and each new one as soon as it comes.
  void Refuse(bool refuse);

  int connections() const { return connections_; }
  // Bytes swallowed so far: proof that a fault took hold.
  int64_t dropped() const { return dropped_; }

 private:
  struct Chunk {
    BootMs due;
    std::string bytes;
  };
  struct Direction {
    int from;
    int to;
    std::deque<Chunk> chunks{};
    size_t buffered = 0;
  };
  struct Connection {
    Direction up;    // client to server
    Direction down;  // server to client
    bool broken = false;
  };

  void Run();
  void Accept();
  void Receive(Connection& connection, Direction& direction, bool drop);
  void Send(Connection& connection, Direction& direction);
  void CloseBroken();
  int PollTimeout() const;

  std::atomic<int> server_port_;
  int port_ = 0;
  const int listener_;
  const int wake_;

  std::atomic<bool> drop_requests_ = false;
  std::atomic<bool> drop_answers_ = false;
  std::atomic<bool> refuse_ = false;
  std::atomic<bool> cut_ = false;
  std::atomic<bool> stopping_ = false;
  std::atomic<int64_t> delay_ms_ = 0;
  std::atomic<int64_t> dropped_ = 0;
  std::atomic<int> connections_ = 0;

  std::list<Connection> open_;  // the thread's own
  std::thread thread_;
};

}  // namespace firn
