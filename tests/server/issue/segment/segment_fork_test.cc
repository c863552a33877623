// A process forks while numbers are being taken: the child must not issue a single number.

#include <atomic>
#include <latch>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/segment/segment.h"
#include "tests/support/endless_source.h"

namespace firn {
namespace {

// Returns 0 if every call is refused.
int ChildGetsNothing(Segment& segment) {
  alarm(20);  // ends a child that hangs on a lock of its parent
  for (int i = 0; i < 1'000; ++i) {
    int64_t id = 0;
    if (segment.TryOne(Method::kEmbedded, &id)) return 1;
    IssueCall call({.count = 5});
    if (segment.Issue(call) != Verdict::kRefused) return 2;
    segment.Tick(SystemClock().Boot());
  }
  segment.Stop();
  return 0;
}

// The parent's threads take numbers and hold the lock as often as they can. None of them starts or
// allocates during a fork: the child inherits the state of a sanitizer's heap, including its locks.
TEST(SegmentForkTest, AForkedChildGetsNothingAndTheParentContinues) {
  constexpr int64_t kStep = 1'000'000'000'000;
  EndlessSource source;
  const auto segment = *Segment::Make(
      {.name = "order", .strategy = "segment", .step = kStep, .step_max = kStep, .prefetch_at = 99},
      {source, SystemClock(), SystemEntropy(), {}});
  IssueCall first({.count = 1});
  while (segment->Issue(first) != Verdict::kIssued) {
  }
  std::atomic<bool> done{false};
  std::atomic<int64_t> taken{0};
  std::latch running{3};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      int64_t id = 0;
      taken += segment->TryOne(Method::kEmbedded, &id) ? 1 : 0;
      running.count_down();
      while (!done) taken += segment->TryOne(Method::kEmbedded, &id) ? 1 : 0;
    });
  }
  threads.emplace_back([&] {
    segment->Tick(SystemClock().Boot());
    running.count_down();
    while (!done) segment->Tick(SystemClock().Boot());
  });
  running.wait();
  for (int forks = 0; forks < 20; ++forks) {
    const pid_t child = fork();
    if (child == 0) _exit(ChildGetsNothing(*segment));
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "wait status " << status;
  }
  const int64_t before = taken;
  const BootMs deadline = SystemClock().Boot() + Milliseconds(30'000);
  while (taken == before && SystemClock().Boot() < deadline) std::this_thread::yield();
  EXPECT_GT(taken, before) << "the parent has stopped issuing";
  done = true;
}

}  // namespace
}  // namespace firn
