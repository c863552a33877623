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
// thread at a time, which may be another one.
class ThreadTimes {
 public:
  struct Times {
    Micros ran{0}, waited{0};
  };

  explicit ThreadTimes(pid_t thread);
  ThreadTimes();  // of the calling thread
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
  // Records that a thread waited for a processor that long, at some time from `from` to `until`.
  void Note(Micros from, Micros until, Micros delay);

  // The same for the calling thread, between successive calls.
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
  // Call it after Stop. Returns how long those threads may have delayed a call in that time. The
  // sum of: the time in which they did not sleep; the longest wait of any other thread for a
  // processor, because it may have held a lock that they needed; and the delay of the sampling
  // thread's own wake-up.
  Micros Kept(Micros from, Micros until) const;

 private:
  static constexpr Micros kPause{5'000};

  struct Span {
    Micros from, until, delay;
  };
  struct Watched {
    explicit Watched(pid_t thread) : times(thread) {}
    ThreadTimes times;
    Micros awake{0};  // in the last sample
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
