// A process forks in the middle of use: the child must not give a single number.

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/entropy.h"
#include "server/issue/segment.h"

namespace firn {
namespace {

class CountingSource final : public RangeSource {
 public:
  void Take(const TagDefinition&, int64_t size, TakeDone done) override {
    const int64_t begin = next_.fetch_add(size);
    done(Range{begin, begin + size});
  }
  void GiveBack(const TagDefinition&, Range, GiveBackDone done) override { done({}); }
  bool permits_no_buffer() const override { return true; }

 private:
  std::atomic<int64_t> next_{1};
};

// 0 when it is refused every time.
int ChildGetsNothing(Segment& segment) {
  alarm(20);  // a child that hangs on a lock of its parent's is a failure
  for (int i = 0; i < 1'000; ++i) {
    int64_t id = 0;
    if (segment.TryOne(Method::kEmbedded, &id)) return 1;
    Demand demand;
    demand.missing = 5;
    if (segment.Issue(demand) != Verdict::kRefused) return 2;
    segment.Tick(SystemClock().Boot());
  }
  segment.Stop();
  return 0;
}

TEST(SegmentForkTest, AChildGetsNothingAndTheParentGoesOn) {
  CountingSource source;
  const auto segment =
      *Segment::Make({.name = "order", .strategy = "segment", .step = 100, .step_max = 1'000},
                     {source, SystemClock(), SystemEntropy(), {}});
  std::atomic<bool> done{false};
  std::atomic<int64_t> taken{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) {
        Demand demand;
        demand.missing = 1;
        int64_t id = 0;
        const bool got =
            segment->TryOne(Method::kEmbedded, &id) || segment->Issue(demand) == Verdict::kIssued;
        taken += got ? 1 : 0;
      }
    });
  }
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
  EXPECT_GT(taken, before) << "the parent has stopped";
  done = true;
}

}  // namespace
}  // namespace firn
