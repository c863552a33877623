// Tests fork() during calls: parent and child never get the same id.

#include <array>
#include <cstdio>
#include <set>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/local_ranges.h"
#include "client/source/registry_source.h"
#include "tests/client/client_rig.h"
#include "tests/client/source/announcer.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

constexpr int kIds = 100;

// The message of a child to its parent: kIds ids, or nothing.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }

  [[noreturn]] void Child(Client& client) {
    alarm(60);  // fails if the child hangs on a lock of its parent
    int64_t ids[kIds] = {};
    for (int i = 0; i < kIds; ++i) {
      const Result<int64_t> id =
          i % 2 == 0 ? client.GetId("order") : client.GetIdLater("order").get();
      if (!id.ok()) {
        std::fprintf(stderr, "call %d in the child: %s\n", i, id.status().message().c_str());
        _exit(1);
      }
      ids[i] = *id;
    }
    _exit(write(ends_[1], ids, sizeof ids) == sizeof ids ? 0 : 2);
  }

  void Read(std::multiset<int64_t>& into) {
    int64_t ids[kIds] = {};
    ASSERT_EQ(read(ends_[0], ids, sizeof ids), static_cast<ssize_t>(sizeof ids));
    into.insert(ids, ids + kIds);
  }

 private:
  int ends_[2];
};

// Runs `child` in a forked child, which exits with its result. Returns the exit code, or -1 if it
// hung or was killed.
template <typename Child>
int InChild(Child child) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(60);
    _exit(child());
  }
  int status = 0;
  return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// Returns the number of descriptors that are connections to this port.
int ConnectionsTo(int port) {
  int count = 0;
  for (int fd = 0; fd < 1024; ++fd) {
    sockaddr_in peer{};
    socklen_t size = sizeof peer;
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
    count += peer.sin_family == AF_INET && ntohs(peer.sin_port) == port ? 1 : 0;
  }
  return count;
}

int PortOf(const std::string& address) { return std::stoi(address.substr(address.find(':') + 1)); }

class ForkTest : public testing::Test {
 protected:
  // Forks from this thread while others call, and collects the ids of both processes.
  void ForkUnderLoad() {
    std::mutex mutex;
    std::multiset<int64_t> ids;
    rig_.client();
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
      threads.emplace_back([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
          const Result<int64_t> id = rig_.client().GetId("order");
          EXPECT_TRUE(id.ok()) << id.status();
          const std::lock_guard lock(mutex);
          if (id.ok()) ids.insert(*id);
        }
      });
    }
    for (int forks = 0; forks < 5; ++forks) {
      Pipe pipe;
      const pid_t child = fork();
      if (child == 0) pipe.Child(rig_.client());
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
      const std::lock_guard lock(mutex);
      pipe.Read(ids);
    }
    threads.clear();
    const std::set<int64_t> once(ids.begin(), ids.end());
    EXPECT_GT(ids.size(), size_t{5} * kIds);
    EXPECT_EQ(once.size(), ids.size()) << "an id was issued twice";
  }

  ClientRig rig_{2};
};

TEST_F(ForkTest, AChildStartsAgainAndTheParentContinues) { ForkUnderLoad(); }

TEST_F(ForkTest, AChildDoesNotUseItsParentsLocalRanges) {
  rig_.options.local_ranges = LocalRanges({LocalTag::Segment("order")});
  ASSERT_TRUE(rig_.GetId().ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig_.GetId().ok() && rig_.report.from_memory; }));
  ForkUnderLoad();
}

TEST_F(ForkTest, AChildThatMakesNoCallMayExitNormally) {
  ASSERT_TRUE(rig_.GetId().ok());
  EXPECT_EQ(InChild([this] { return rig_.DropClient(), 0; }), 0);
  EXPECT_TRUE(rig_.GetId().ok()) << "the parent's connections are its own";
}

TEST_F(ForkTest, AChildInheritsNoConnections) {
  ASSERT_TRUE(rig_.GetId().ok());
  ASSERT_TRUE(rig_.client().GetIdLater("order").get().ok());
  const int port = PortOf(rig_.favourite().address());
  ASSERT_EQ(ConnectionsTo(port), 2) << "a blocking one and an asynchronous one";
  EXPECT_EQ(InChild([&] { return ConnectionsTo(port); }), 0);
  EXPECT_EQ(ConnectionsTo(port), 2);
}

// In a daemon, files that the child opens get the descriptor numbers of the closed connections.
TEST_F(ForkTest, AChildKeepsTheFilesThatItOpens) {
  ASSERT_TRUE(rig_.GetId().ok());
  ASSERT_TRUE(rig_.client().GetIdLater("order").get().ok());
  const int lost = InChild([this] {
    close_range(3, ~0U, 0);
    std::array<int, 64> own{};
    for (int& fd : own) fd = open("/dev/null", O_WRONLY | O_CLOEXEC);
    if (!rig_.client().GetId("order").ok()) return 100;
    if (!rig_.client().GetIdLater("order").get().ok()) return 101;
    int gone = 0;
    for (const int fd : own) gone += write(fd, "x", 1) == 1 ? 0 : 1;
    return gone;
  });
  EXPECT_EQ(lost, 0);
}

// A child of a child creates its own client state, like the first child.
TEST_F(ForkTest, AGrandchildStartsAgain) {
  ASSERT_TRUE(rig_.GetId().ok());
  EXPECT_EQ(InChild([this] {
              if (!rig_.client().GetId("order").ok()) return 1;
              return InChild([this] { return rig_.client().GetId("order").ok() ? 0 : 2; });
            }),
            0);
}

// --- servers from a registry ---------------------------------------------------------------------

class RegistryForkTest : public ForkTest {
 protected:
  void TearDown() override {
    rig_.DropClient();
    operator_.reset();
  }
  void FindServersIn(const std::string& registry) {
    operator_ = std::make_unique<Announcer>(registry);
    const std::string uuid = operator_->MakeCluster();
    for (FakeServer* server : rig_.servers()) {
      server->BelongTo(uuid);
      operator_->Add(server->address());
    }
    rig_.options.servers = registry;
    rig_.options.open_source = RegistrySources({.cache_file = folder_ / "servers"});
    ASSERT_TRUE(Eventually(kPatience, [this] { return rig_.GetId().ok(); }));
  }

  TempDir folder_;
  std::unique_ptr<ZooKeeper> zk_;
  std::unique_ptr<Announcer> operator_;
};

TEST_F(RegistryForkTest, AChildDiscoversTheServersOfADirectory) {
  ASSERT_NO_FATAL_FAILURE(FindServersIn("dir://" + (folder_ / "registry")));
  ForkUnderLoad();
}

TEST_F(RegistryForkTest, AChildDiscoversTheServersOfZooKeeper) {
  auto started = ZooKeeper::Start();
  ASSERT_TRUE(started.ok()) << started.status();
  zk_ = *std::move(started);
  ASSERT_NO_FATAL_FAILURE(FindServersIn("zk://" + zk_->hosts() + "/firn/shop"));
  ForkUnderLoad();
}

}  // namespace
}  // namespace firn
