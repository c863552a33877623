#pragma once

#include <atomic>
#include <deque>
#include <list>
#include <string>
#include <thread>

#include "common/base/units.h"

namespace firn {

// A faulty network between a client and a server on 127.0.0.1: listens on its own port, forwards
// bytes in both directions, and injects the faults that the test requests. All verbs are
// thread-safe and apply to later bytes; the object's thread does the work.
//
// Sharp edge: after dropped bytes no protocol can continue on the connection. Cut it.
class TcpProxy {
 public:
  static constexpr size_t kBufferedMax = 4 << 20;  // a direction with more unsent bytes is not read

  explicit TcpProxy(int server_port);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;
  TcpProxy& operator=(const TcpProxy&) = delete;

  int port() const { return port_; }

  // Drops the client's bytes; the server receives nothing, and both believe they are connected.
  void DropRequests(bool drop) { drop_requests_ = drop; }
  // Drops the server's bytes: it applies requests, but its answers never arrive.
  void DropAnswers(bool drop) { drop_answers_ = drop; }
  // Delays every byte by this time, in both directions.
  void Delay(Milliseconds delay) { delay_ms_ = delay.count(); }
  // New connections go to another server.
  void Redirect(int server_port) { server_port_ = server_port; }
  // Closes every connection. New ones are accepted.
  void Cut();
  // Closes every connection, and each new one at once.
  void Refuse(bool refuse);

  int connections() const { return connections_; }
  // Bytes dropped so far: proof that a fault had an effect.
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
    Direction up;    // from the client to the server
    Direction down;  // from the server to the client
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
