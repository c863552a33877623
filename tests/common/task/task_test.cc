#include "common/task/task.h"

#include <coroutine>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

namespace firn {
namespace {

// Resumes its only waiting task when a test requests it.
class Steps final : public Trampoline, public PooledTask {
 public:
  struct Pause {
    Steps* steps;
    bool await_ready() const noexcept { return false; }
    void await_suspend(std::coroutine_handle<> task) const { steps->waiting_ = task; }
    void await_resume() const noexcept {}
  };
  Pause Next() { return {this}; }
  void Step() { Resume(waiting_); }
  FramePool& frames() override { return frames_; }

 private:
  std::coroutine_handle<> waiting_;
  FramePool frames_;
};

Task<int> Below(Steps* steps) {
  co_await steps->Next();
  co_return 7;
}

Task<int> Above(Steps* steps) {
  int below = co_await Below(steps);
  co_return below + 1;
}

Task<int> WithoutPool(int number, Steps* steps) {
  co_await steps->Next();
  co_return number;
}

TEST(TrampolineTest, ResumesTheParentOfATaskThatEnds) {
  Steps steps;
  Task<int> task = Above(&steps);
  steps.Start(task);
  EXPECT_TRUE(task.busy());
  steps.Step();
  EXPECT_EQ(task.Take(), 8);
}

TEST(FramePoolTest, ReusesTheFramesOfEndedTasks) {
  Steps steps;
  for (int i = 0; i < 3; ++i) {
    Task<int> task = Below(&steps);
    EXPECT_EQ(steps.frames().kept(), 0u) << "the frame is in use";
    steps.Start(task);
    steps.Step();
    EXPECT_EQ(task.Take(), 7);
    EXPECT_EQ(steps.frames().kept(), 1u);
  }
}

TEST(FramePoolTest, KeepsFramesOfOneSize) {
  Steps steps;
  { const Task<int> task = Below(&steps); }
  { const Task<int> other = Above(&steps); }
  { const Task<int> again = Above(&steps); }
  EXPECT_EQ(steps.frames().kept(), 1u);
}

TEST(FramePoolTest, KeepsALimitedNumberOfFrames) {
  Steps steps;
  std::vector<Task<int>> tasks;
  for (size_t i = 0; i < FramePool::kKeptMax + 10; ++i) tasks.push_back(Below(&steps));
  tasks.clear();
  EXPECT_EQ(steps.frames().kept(), FramePool::kKeptMax);
}

TEST(FramePoolTest, OtherFramesAreAllocatedWithoutIt) {
  Steps steps;
  { const Task<int> task = WithoutPool(3, &steps); }
  EXPECT_EQ(steps.frames().kept(), 0u);
}

}  // namespace
}  // namespace firn
