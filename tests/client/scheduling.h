#pragma once

#include <condition_variable>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "common/time/micros.h"

namespace firn {

using client::Micros;

// Returns the threads of this process.
std::set<pid_t> Threads();

// The kernel's counts of how long a thread has run, and has waited for a processor. Used by one
// thread at a time, which may be a different thread.
class ThreadTimes {
 public:
  struct Times {
    Micros ran{0}, waited{0};
  };

  explicit ThreadTimes(pid_t thread);
  ThreadTimes();  // for the calling thread
  ~ThreadTimes();
  ThreadTimes(ThreadTimes&& other) noexcept;
  ThreadTimes& operator=(ThreadTimes&&) = delete;

  Times Read();

 private:
  int file_;
  Times last_{};
};

// Records when the machine kept this process from running, to explain late calls. Thread-safe.
class Scheduling {
 public:
  Scheduling();
  ~Scheduling();

  // Starts to sample these threads of the process repeatedly.
  void Watch(const std::set<pid_t>& threads);
  // Records that a thread waited for a processor for `delay`, at some time between `from` and
  // `until`.
  void Note(Micros from, Micros until, Micros delay);

  // Records the delays of the calling thread, between successive calls of Add.
  class Notes {
   public:
    explicit Notes(Scheduling& scheduling);
    void Add();

   private:
    Scheduling& scheduling_;
    ThreadTimes times_;
    Micros from_, waited_;
  };

  // Stops sampling.
  void Stop();
  // Must be called after Stop. Returns how long the watched threads may have delayed a call in this
  // time. This is the sum of the time in which they did not sleep, the longest wait of any other
  // thread for a processor (it may have held a lock that they needed), and the delay of the
  // sampling thread's wake-up.
  Micros Kept(Micros from, Micros until) const;

 private:
  static constexpr Micros kPause{5'000};

  struct Span {
    Micros from, until, delay;
  };
  struct Watched {
    explicit Watched(pid_t thread) : times(thread) {}
    ThreadTimes times;
    Micros awake{0};  // time awake, in the last sample
  };
  void Run();
  void Sample(Micros from, Micros until);

  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;  // under mutex_, as all below
  std::vector<Watched> watched_;
  std::vector<Span> samples_, notes_;  // in the order of `until`, the first ones
  std::thread thread_;
};

}  // namespace firn
