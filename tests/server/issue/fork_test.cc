// A process forks while ids are being taken: the child must not issue a single id.

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/snowflake/snowflake.h"

namespace firn {
namespace {

// A child inherits the state of a sanitizer's heap, including its locks. So parents fork while none
// of their threads starts or allocates.
class ForkTest : public testing::TestWithParam<SequencerKind> {
 protected:
  ForkTest() {
    auto claim = std::make_shared<Claim>(Layout::Firn(), MachineId(1), SystemClock().Wall());
    claim->ExtendTo(SystemClock().Wall() + std::chrono::hours(1));
    EXPECT_EQ(snowflake_.Adopt(claim), Status());
  }

  // Runs in the child. Returns 0 if every call is refused.
  int ChildGetsNothing() {
    alarm(20);  // ends a child that hangs on a lock of its parent
    for (int i = 0; i < 1'000; ++i) {
      int64_t id = 0;
      if (snowflake_.TryOne(Method::kEmbedded, &id)) return 1;
      IssueCall call({.count = 1});
      if (snowflake_.Issue(call) != Verdict::kRefused) return 2;
      if (call.refusal().reason != Reason::kNotReady) return 3;
    }
    return 0;
  }

  IdClock id_clock_;
  TickSource ticks_{Layout::Firn(), id_clock_, SystemClock()};
  Snowflake snowflake_{ticks_, SystemEntropy(), {.sequencer = {.kind = GetParam()}}};
};

TEST_P(ForkTest, AForkedChildGetsNothingAndTheParentContinues) {
  std::atomic<bool> done{false};
  std::atomic<int64_t> taken{0};
  std::latch running{3};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      int64_t id = 0;
      taken += snowflake_.TryOne(Method::kEmbedded, &id) ? 1 : 0;
      running.count_down();
      while (!done) taken += snowflake_.TryOne(Method::kEmbedded, &id) ? 1 : 0;
    });
  }
  running.wait();
  for (int forks = 0; forks < 20; ++forks) {
    const pid_t child = fork();
    if (child == 0) _exit(ChildGetsNothing());
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
  }
  const int64_t before = taken;
  const BootMs deadline = SystemClock().Boot() + Milliseconds(5'000);
  while (taken == before && SystemClock().Boot() < deadline) std::this_thread::yield();
  EXPECT_GT(taken, before) << "the parent has stopped issuing";
  done = true;
}

// Another thread forks while the keeper's thread is in the middle of a change.
TEST_P(ForkTest, AForkedChildNeverHangsOnALockOfItsParent) {
  std::atomic<bool> done{false};
  std::latch running{1};
  std::jthread keeper([&] {
    snowflake_.Last();
    running.count_down();
    while (!done) snowflake_.Last();
  });
  running.wait();
  int failed = 0;
  for (int forks = 0; forks < 50 && failed == 0; ++forks) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      const bool nothing = !snowflake_.Last() && !snowflake_.CloseClaim();
      snowflake_.Close();
      _exit(nothing ? 0 : 1);
    }
    int status = 0;
    failed += waitpid(child, &status, 0) == child && status == 0 ? 0 : 1;
  }
  done = true;
  EXPECT_EQ(failed, 0) << "a child was ended by its alarm, or got an id";
}

INSTANTIATE_TEST_SUITE_P(AllKinds, ForkTest,
                         testing::Values(SequencerKind::kAtomic, SequencerKind::kMutex,
                                         SequencerKind::kSpin));

}  // namespace
}  // namespace firn
