#include "server/end_signals.h"

#include <cstdio>
#include <thread>

#include <pthread.h>
#include <unistd.h>

namespace firn {

EndSignals::EndSignals() {
  sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  std::thread([this] { Watch(); }).detach();
}

void EndSignals::Serve() {
  const std::scoped_lock lock(mutex_);
  // A request that came while it was opened again is still to be answered.
  if (phase_ == Phase::kStarting) phase_ = Phase::kServing;
}

std::optional<int> EndSignals::Next(Milliseconds patience) {
  std::unique_lock lock(mutex_);
  const bool some = arrived_.wait_for(lock, patience, [this] { return !waiting_.empty(); });
  if (!some) return std::nullopt;
  const int signal = waiting_.front();
  waiting_.pop_front();
  return signal;
}

void EndSignals::Watch() {
  for (;;) {
    int signal = 0;
    sigwait(&signals_, &signal);
    const std::scoped_lock lock(mutex_);
    if (signal == SIGHUP) {
      // A start reads everything anyway, and an end nothing more.
      if (phase_ == Phase::kServing) waiting_.push_back(signal);
    } else if (phase_ == Phase::kStarting) {
      std::fputs("firn-server: stopped by a signal during its start\n", stderr);
      _exit(0);
    } else if (phase_ == Phase::kEnding) {
      _exit(1);
    } else {
      phase_ = Phase::kEnding;
      waiting_.push_back(signal);
    }
    arrived_.notify_all();
  }
}

}  // namespace firn
