// A process forks in the midst of its calls: parent and child never get one id both.

#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/local_ranges.h"
#include "tests/client/client_rig.h"

namespace firn {
namespace {

constexpr Milliseconds kPatience{60'000};
constexpr int kIds = 100;

// What a child says to its parent: kIds ids, or nothing.
class Pipe {
 public:
  Pipe() { EXPECT_EQ(pipe(ends_), 0); }
  ~Pipe() {
    close(ends_[0]);
    close(ends_[1]);
  }

  [[noreturn]] void Child(Client& client) {
    alarm(60);  // a child that hangs on a lock of its parent's is a failure
    int64_t ids[kIds] = {};
    for (int i = 0; i < kIds; ++i) {
      const Result<int64_t> id =
          i % 2 == 0 ? client.GetId("order") : client.GetIdLater("order").get();
      if (!id.ok()) _exit(1);
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

class ForkTest : public testing::Test {
 protected:
  // Forks from this thread while others call, and gathers what both sides got.
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
    EXPECT_EQ(once.size(), ids.size()) << "an id came twice";
  }

  ClientRig rig_{2};
};

TEST_F(ForkTest, AChildBeginsAnewAndTheParentGoesOn) { ForkUnderLoad(); }

TEST_F(ForkTest, AChildLeavesItsParentsLocalRangesAlone) {
  rig_.options.local_ranges = LocalRanges({LocalTag::Segment("order")});
  ASSERT_TRUE(rig_.GetId().ok());
  EXPECT_TRUE(Eventually(kPatience, [&] { return rig_.GetId().ok() && rig_.report.from_memory; }));
  ForkUnderLoad();
}

TEST_F(ForkTest, AChildThatNeverAsksMayEndLikeAnyOther) {
  ASSERT_TRUE(rig_.GetId().ok());
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    rig_.DropClient();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
  EXPECT_TRUE(rig_.GetId().ok()) << "the parent's connections are its own";
}

}  // namespace
}  // namespace firn
