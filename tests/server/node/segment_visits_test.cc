// Which tags the control loop visits: those with work at every round, others once a second.

#include <memory>

#include <gtest/gtest.h>

#include "server/node/segment_tags.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// Fails `failures` times, and then returns ranges.
class FailingSource final : public RangeSource {
 public:
  explicit FailingSource(int failures) : failures_(failures) {}

  void Take(const TagDefinition&, int64_t size, TakeDone done) override {
    if (failures_-- > 0) return done(Unavailable("the store is down"));
    done(Range{1, 1 + size});
  }
  void GiveBack(const TagDefinition&, Range, GiveBackDone done) override { done({}); }
  bool permits_no_buffer() const override { return true; }

 private:
  int failures_;
};

class SegmentVisitsTest : public testing::Test {
 protected:
  // Makes tag `order` with a source that fails `failures` times, and calls it once.
  void Begin(int failures) {
    ASSERT_EQ(tags_.AddSource("main", std::make_unique<FailingSource>(failures)), Status());
    TagDefinition tag{.name = "order", .strategy = "segment"};
    tag.store = "main";
    strategy_ = *tags_.Make(tag);
    Pass(Milliseconds(30));
    IssueCall call;
    call.Begin({.tag = "order", .count = 1});
    strategy_->Issue(call);
  }
  void Pass(Milliseconds time) {
    for (Milliseconds passed{0}; passed < time; passed += Milliseconds(10)) {
      clock_.Advance(Milliseconds(10));
      tags_.Tick(clock_.Boot());
    }
  }
  int64_t Supply() const { return tags_.status("order")->supply; }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{1};
  MemoryTree tree_{clock_};
  MemoryCoordinator registry_{tree_};
  SegmentTags tags_{registry_, [](const std::function<void()>& task) { task(); }, clock_, entropy_};
  std::shared_ptr<Strategy> strategy_;
};

// The backoff of three failures ends after 20 + 40 + 80 ms at most, without another call.
TEST_F(SegmentVisitsTest, RepeatsAFailedRequestAsSoonAsItsBackoffEnds) {
  Begin(3);
  EXPECT_EQ(Supply(), 0);
  Pass(Milliseconds(250));
  EXPECT_GT(Supply(), 0);
}

// The rate is measured once a second, so that idle tags show that they are.
TEST_F(SegmentVisitsTest, AnIdleTagShowsNoRate) {
  Begin(0);
  for (int i = 0; i < 50; ++i) {
    int64_t id = 0;
    strategy_->TryOne(Method::kEmbedded, &id);
  }
  Pass(Milliseconds(2'500));
  EXPECT_GT(tags_.status("order")->per_second, 0);
  Pass(Milliseconds(120'000));
  EXPECT_EQ(tags_.status("order")->per_second, 0);
}

}  // namespace
}  // namespace firn
