#include "tests/client/scheduling.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>

#include "common/time/clock.h"

namespace firn {
std::set<pid_t> Threads() {
  std::set<pid_t> threads;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/task")) {
    threads.insert(std::atoi(entry.path().filename().c_str()));
  }
  return threads;
}

ThreadTimes::ThreadTimes(pid_t thread)
    : file_(open(("/proc/self/task/" + std::to_string(thread) + "/schedstat").c_str(),
                 O_RDONLY | O_CLOEXEC)) {}
ThreadTimes::ThreadTimes() : ThreadTimes(gettid()) {}
ThreadTimes::ThreadTimes(ThreadTimes&& other) noexcept
    : file_(std::exchange(other.file_, -1)), last_(other.last_) {}
ThreadTimes::~ThreadTimes() {
  if (file_ >= 0) close(file_);
}

ThreadTimes::Times ThreadTimes::Read() {
  char text[80] = "";
  // For an ended thread, the kernel has no data, so the last values stay valid.
  if (pread(file_, text, sizeof text - 1, 0) <= 0) return last_;
  long long ran_ns = 0, waited_ns = 0;
  if (std::sscanf(text, "%lld %lld", &ran_ns, &waited_ns) == 2) {
    last_ = {Micros(ran_ns / 1'000), Micros(waited_ns / 1'000)};
  }
  return last_;
}

Scheduling::Scheduling() : thread_([this] { Run(); }) {}
Scheduling::~Scheduling() { Stop(); }

void Scheduling::Watch(const std::set<pid_t>& threads) {
  const std::lock_guard lock(mutex_);
  for (const pid_t thread : threads) {
    Watched& one = watched_.emplace_back(thread);
    const ThreadTimes::Times times = one.times.Read();
    one.awake = times.ran + times.waited;
  }
}

void Scheduling::Note(Micros from, Micros until, Micros delay) {
  constexpr Micros kTrifle{5'000};
  if (delay < kTrifle) return;
  const std::lock_guard lock(mutex_);
  notes_.push_back({from, until, delay});
}

Scheduling::Notes::Notes(Scheduling& scheduling)
    : scheduling_(scheduling), from_(SystemClock().BootMicros()), waited_(times_.Read().waited) {}

void Scheduling::Notes::Add() {
  const Micros until = SystemClock().BootMicros(), waited = times_.Read().waited;
  scheduling_.Note(from_, until, waited - waited_);
  from_ = until;
  waited_ = waited;
}

void Scheduling::Stop() {
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(stopping_, true)) return;
    stop_.notify_all();
  }
  thread_.join();
}

void Scheduling::Run() {
  std::unique_lock lock(mutex_);
  Micros from = SystemClock().BootMicros();
  for (bool last = false; !last;) {
    last = stop_.wait_for(lock, kPause, [this] { return stopping_; });
    const Micros until = SystemClock().BootMicros();
    Sample(from, until);
    from = until;
  }
}

// The kernel updates a thread's run time at its ticks. A sample may therefore show more run time
// than has passed since the previous sample. The surplus belongs to the time before it.
void Scheduling::Sample(Micros from, Micros until) {
  const Micros span = until - from;
  Micros delay = std::max(span - kPause, Micros(0)), before{0};
  for (Watched& one : watched_) {
    const ThreadTimes::Times times = one.times.Read();
    const Micros awake = times.ran + times.waited - one.awake;
    one.awake += awake;
    delay += std::min(awake, span);
    before += std::max(awake - span, Micros(0));
  }
  for (size_t i = samples_.size(); i > 0 && before > Micros(0); --i) {
    Span& sample = samples_[i - 1];
    const Micros more = std::min(before, sample.until - sample.from - sample.delay);
    sample.delay += more;
    before -= more;
  }
  samples_.push_back({from, until, std::min(delay, span)});
}

Micros Scheduling::Kept(Micros from, Micros until) const {
  const auto meets = [&](const Span& one) { return one.until >= from && one.from <= until; };
  Micros kept{0}, longest{0};
  for (const Span& sample : samples_) kept += meets(sample) ? sample.delay : Micros(0);
  for (const Span& note : notes_) longest = meets(note) ? std::max(longest, note.delay) : longest;
  return kept + longest;
}

}  // namespace firn
