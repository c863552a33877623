#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/call/bells.h"
#include "tests/bench/dialect.h"

namespace firn {

// Returns a socket that is connected to a loopback port. Ends the process if the connection fails.
int ConnectedSocket(uint16_t port);

// One connection that blocking callers share, and the thread that writes and reads it: the least
// that a client with pipelined calls does. It has no failover, no deadlines and no checks of ids.
// A failure of the connection ends the process.
class BarePipeline {
 public:
  // Connects to a loopback port.
  BarePipeline(uint16_t port, const Dialect& dialect);
  // No call may be in progress.
  ~BarePipeline();
  BarePipeline(const BarePipeline&) = delete;
  BarePipeline& operator=(const BarePipeline&) = delete;

  // Sends one request and waits for its answer. Thread-safe. Returns false if the server refused.
  bool Call();

 private:
  enum class State : uint8_t { kWaiting, kAnswered, kRefused };
  struct Waiting {
    const std::shared_ptr<client::Bell> bell;
    std::atomic<State> state = State::kWaiting;
  };

  void Run();
  void Wake() const;
  void TakeAnswers();
  void SendRequests();

  const Dialect& dialect_;
  const int socket_, wake_;
  const std::shared_ptr<client::Bells> bells_ = std::make_shared<client::Bells>();
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::vector<Waiting*> new_;  // under the mutex

  // Used by the thread only.
  std::vector<Waiting*> to_send_;
  std::deque<Waiting*> sent_;
  std::string in_, out_;
  std::thread thread_;  // last, because it uses all the others
};

}  // namespace firn
