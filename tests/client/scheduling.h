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

// The threads of this process.
std::set<pid_t> Threads();

// How long one thread has run since it began, and waited for a processor, as the kernel counts it.
// Used by one thread at a time, which need not be that one.
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

// What kept this process from running, and when: for whoever judges lateness. Thread-safe.
class Scheduling {
 public:
  Scheduling();
  ~Scheduling();

  // From now on these threads of the process are looked at again and again.
  void Watch(const std::set<pid_t>& threads);
  // A thread waited for a processor so long, some time from `from` to `until`.
  void Note(Micros from, Micros until, Micros delay);

  // The same of the calling thread, from each moment that is added to the next.
  class Notes {
   public:
    explicit Notes(Scheduling& scheduling);
    void Add();

   private:
    Scheduling& scheduling_;
    ThreadTimes times_;
    Micros from_, waited_;
  };

  // No more is seen from now on.
  void Stop();
  // After Stop: how long whoever needs those threads may have been kept waiting in that time. That
  // is how long they did anything but sleep; the longest that any other thread waited for a
  // processor, for it may have held what they wanted; and how much later than it should the looker
  // itself woke up.
  Micros Kept(Micros from, Micros until) const;

 private:
  static constexpr Micros kPause{5'000};

  struct Span {
    Micros from, until, delay;
  };
  struct Watched {
    explicit Watched(pid_t thread) : times(thread) {}
    ThreadTimes times;
    Micros awake{0};  // as the last look found it
  };
  void Run();
  void Look(Micros from, Micros until);

  std::mutex mutex_;
  std::condition_variable stop_;
  bool stopping_ = false;  // under mutex_, as all below
  std::vector<Watched> watched_;
  std::vector<Span> looks_, notes_;  // in the order of `until`, the first ones
  std::thread thread_;
};

}  // namespace firn
