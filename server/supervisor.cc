#include "server/supervisor.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <utility>

#include <pthread.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/base/parse.h"
#include "common/log/log.h"
#include "common/time/clock.h"

namespace firn {
namespace {

constexpr int64_t kLeastUs = 1'000'000;

}  // namespace

EndSignals::EndSignals() {
  sigemptyset(&signals_);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals_, signal);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
  std::thread([this] { Watch(); }).detach();
}

void EndSignals::Serve() {
  const std::scoped_lock lock(mutex_);
  if (phase_ == Phase::kStarting) phase_ = Phase::kServing;
}

bool EndSignals::StartAgain() {
  const std::scoped_lock lock(mutex_);
  if (phase_ == Phase::kEnding) return false;
  waiting_.clear();
  phase_ = Phase::kStarting;
  return true;
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
      // A start reads all files anyway, and an ending server needs none.
      if (phase_ == Phase::kServing) waiting_.push_back(signal);
    } else if (phase_ == Phase::kStarting) {
      std::fputs("firn-server: stopped by a signal during its start\n", stderr);
      _exit(0);
    } else if (phase_ == Phase::kServing) {
      phase_ = Phase::kEnding;
      ends_from_ = SystemClock().Boot() + kSameRequest;
      waiting_.push_back(signal);
    } else if (SystemClock().Boot() >= ends_from_) {
      _exit(1);
    }
    arrived_.notify_all();
  }
}

void NotifyServiceManager(std::string_view line) {
  const char* const named = std::getenv("NOTIFY_SOCKET");
  if (named == nullptr) return;
  const std::string_view path(named);
  sockaddr_un address{};
  if (path.size() < 2 || path.size() >= sizeof address.sun_path) return;
  address.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), address.sun_path);
  if (path.front() == '@') address.sun_path[0] = '\0';  // the abstract namespace
  const int socket = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (socket < 0) return;
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path.size());
  const ssize_t sent = sendto(socket, line.data(), line.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), size);
  close(socket);
  if (sent < 0) LogWarning("service_manager") << "the service manager could not be notified";
}

Watchdog::Watchdog() {
  const char* const wanted = std::getenv("WATCHDOG_USEC");
  if (wanted == nullptr) return;
  const auto us = ParseNumberWithin<int64_t>(wanted, kLeastUs);
  if (us) interval_ = Milliseconds(*us / 1000);
}

void Watchdog::Report(Milliseconds behind) const {
  if (!stuck_) {
    LogInfo("threads_run") << "all threads run again, the service manager's watchdog is notified";
    return;
  }
  LogError("thread_hangs").With("behind_ms", behind.count())
      << "a thread has hung for " << behind.count()
      << " ms: the service manager's watchdog is not notified, and restarts the server";
}

void Watchdog::Observe(BootMs oldest_turn, BootMs now) {
  if (!interval_ || now < next_) return;
  const Milliseconds behind = now - oldest_turn;
  const bool stuck = behind >= *interval_ / 2;
  if (stuck != std::exchange(stuck_, stuck)) Report(behind);
  if (stuck) return;
  NotifyServiceManager("WATCHDOG=1");
  next_ = now + *interval_ / 4;
}

}  // namespace firn
