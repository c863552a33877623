// The service manager's watchdog is notified while all threads run, and not while one of them
// hangs.

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/server/program/running_server.h"

namespace firn {
namespace {

constexpr char kHangs[] = "a thread has hung for";
constexpr char kRunsAgain[] = "all threads run again";
constexpr Milliseconds kIntervalOfTest{2'000};

// The socket that systemd names in $NOTIFY_SOCKET.
class NotifySocket {
 public:
  explicit NotifySocket(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_DGRAM, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    EXPECT_LT(path.size(), sizeof address.sun_path);
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0)
        << std::strerror(errno);
  }
  ~NotifySocket() { close(socket_); }
  NotifySocket(const NotifySocket&) = delete;
  NotifySocket& operator=(const NotifySocket&) = delete;

  // Waits for this message, and drops others. Returns false after `patience`.
  bool Receives(const std::string& wanted, Milliseconds patience) const {
    const BootMs give_up = TestNow() + patience;
    for (;;) {
      const auto left = std::max<int64_t>(0, (give_up - TestNow()).count());
      pollfd ready{socket_, POLLIN, 0};
      if (poll(&ready, 1, static_cast<int>(left)) <= 0) return false;
      char message[512];
      const ssize_t size = recv(socket_, message, sizeof message, 0);
      if (size > 0 && std::string(message, static_cast<size_t>(size)) == wanted) return true;
    }
  }

  void Forget() const {
    char message[512];
    while (recv(socket_, message, sizeof message, MSG_DONTWAIT) >= 0) {
    }
  }

 private:
  const int socket_;
};

// Stops one thread of another process, as a debugger does, for as long as it lives.
class StoppedThread {
 public:
  explicit StoppedThread(pid_t thread) : thread_(thread) {
    attached_ = ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) == 0;
    if (!attached_) return;
    ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr);
    waitpid(thread_, nullptr, __WALL);
  }
  ~StoppedThread() {
    if (attached_) ptrace(PTRACE_DETACH, thread_, nullptr, nullptr);
  }
  StoppedThread(const StoppedThread&) = delete;
  StoppedThread& operator=(const StoppedThread&) = delete;

  bool attached() const { return attached_; }

 private:
  const pid_t thread_;
  bool attached_ = false;
};

std::vector<pid_t> OtherThreads(pid_t process) {
  std::vector<pid_t> threads;
  for (const auto& entry :
       std::filesystem::directory_iterator("/proc/" + std::to_string(process) + "/task")) {
    const pid_t thread = std::stoi(entry.path().filename().string());
    if (thread != process) threads.push_back(thread);
  }
  return threads;
}

size_t CountIn(const std::string& text, const std::string& words) {
  size_t count = 0;
  for (size_t at = text.find(words); at != text.npos; at = text.find(words, at + 1)) ++count;
  return count;
}

class WatchdogTest : public testing::Test {
 protected:
  bool Logs(const char* words, size_t times, Milliseconds patience) {
    return Eventually(patience, [&] {
      socket_.Forget();  // a full socket would stop the server's main thread
      return CountIn(server_.log(), words) >= times;
    });
  }

  // Whether the server reports that this thread hangs, while it is stopped.
  bool IsMissed(pid_t thread, size_t missed_before) {
    const StoppedThread stopped(thread);
    if (!stopped.attached()) return false;  // it has ended
    if (!Logs(kHangs, missed_before + 1, 2 * kIntervalOfTest)) return false;
    socket_.Forget();
    EXPECT_FALSE(socket_.Receives("WATCHDOG=1", kIntervalOfTest)) << "it hangs";
    return true;
  }

  TempDir folder_;
  NotifySocket socket_{folder_ / "notify"};
  RunningServer server_{folder_ / "state",
                        {"--io_threads=2"},
                        {"env", "NOTIFY_SOCKET=" + (folder_ / "notify"),
                         "WATCHDOG_USEC=" + std::to_string(kIntervalOfTest.count() * 1000)}};
};

TEST_F(WatchdogTest, NotifiesOnlyWhileAllThreadsRun) {
  ASSERT_TRUE(server_.BecomesReady()) << server_.log();
  ASSERT_TRUE(socket_.Receives("READY=1", Milliseconds(30'000)));
  ASSERT_TRUE(socket_.Receives("WATCHDOG=1", Milliseconds(30'000)));
  ASSERT_TRUE(socket_.Receives("WATCHDOG=1", Milliseconds(30'000))) << "again and again";
  size_t missed = 0;
  for (const pid_t thread : OtherThreads(server_.process().pid())) {
    if (!IsMissed(thread, missed)) continue;
    ++missed;
    EXPECT_TRUE(Logs(kRunsAgain, missed, Milliseconds(30'000)));
    socket_.Forget();
    EXPECT_TRUE(socket_.Receives("WATCHDOG=1", Milliseconds(30'000))) << "it runs again";
  }
  EXPECT_GE(missed, 4u) << "two IO threads, the admin port's, the control thread\n"
                        << server_.log();
}

}  // namespace
}  // namespace firn
