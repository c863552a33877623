#include "registry/cluster/meta_watch.h"

#include <gtest/gtest.h>

#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

class MetaWatchTest : public testing::Test {
 protected:
  MetaWatchTest() {
    for (Coordinator* each : {&operator_, &client_}) {
      each->OnSession([](SessionEvent) {});
      each->Dispatch(Milliseconds(0));
    }
  }

  void Pass(Milliseconds d) {
    const BootMs until = clock_.Boot() + d;
    do {
      clock_.Advance(Milliseconds(50));
      watch_.Tick(clock_.Boot());
      while (operator_.Dispatch(Milliseconds(0)) + client_.Dispatch(Milliseconds(0)) > 0) {
      }
    } while (clock_.Boot() < until);
  }

  void Make(const ClusterMeta& meta) {
    operator_.Multi({Write::Create("/", FormatMeta(meta), Lifetime::kPersistent)},
                    [](const WriteOutcome& done) { EXPECT_TRUE(done.status.ok()); });
    Pass(Milliseconds(200));
  }
  void BeginToSet(const std::string& data) {
    operator_.Multi({Write::Set("/", data, Write::kAnyVersion)},
                    [](const WriteOutcome& done) { EXPECT_TRUE(done.status.ok()); });
  }
  void Set(const std::string& data) {
    BeginToSet(data);
    Pass(Milliseconds(200));
  }

  const ClusterMeta meta_{.uuid = "6f1b0c7e-1f3a-4c55-9d0e-0123456789ab",
                          .era = Nonce(3, 4),
                          .layout = "firn",
                          .floor = {},
                          .reason = {}};
  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{3};
  MemoryTree tree_{clock_};
  MemoryCoordinator operator_{tree_};
  MemoryCoordinator client_{tree_};
  std::vector<Result<ClusterMeta>> told_;
  MetaWatch watch_{client_, entropy_,
                   [this](const Result<ClusterMeta>& meta) { told_.push_back(meta); }};
};

TEST_F(MetaWatchTest, ReportsTheRootNodeOnceItIsCreated) {
  Pass(Milliseconds(1000));
  ASSERT_EQ(told_.size(), 1u);
  EXPECT_EQ(told_[0].code(), Code::kNotFound);
  Make(meta_);
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[1].value(), meta_);
}

TEST_F(MetaWatchTest, ReportsOnlyChanges) {
  Make(meta_);
  Pass(Milliseconds(200'000));
  EXPECT_EQ(told_.size(), 1u);
  ClusterMeta frozen = meta_;
  frozen.frozen = true;
  Set(FormatMeta(frozen));
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_TRUE(told_[1]->frozen);
  Set("garbage");
  ASSERT_EQ(told_.size(), 3u);
  EXPECT_EQ(told_[2].code(), Code::kCorrupt);
}

// A restore freezes a cluster, finds that no data were lost, and writes the original contents
// again. A server that has read the frozen node in between, for another reason, must read the node
// again.
TEST_F(MetaWatchTest, ReportsAChangeThatWasTakenBackBeforeItsNextRead) {
  Make(meta_);
  ClusterMeta frozen = meta_;
  frozen.frozen = true;
  BeginToSet(FormatMeta(frozen));
  BeginToSet(FormatMeta(meta_));
  Pass(Milliseconds(2000));
  ASSERT_EQ(told_.size(), 2u);
  EXPECT_EQ(told_[1].value(), meta_);
}

TEST_F(MetaWatchTest, ReadsAgainInANewSession) {
  Make(meta_);
  tree_.Expire(client_.session());
  ClusterMeta other = meta_;
  other.uuid = "7f1b0c7e-1f3a-4c55-9d0e-0123456789ab";
  Set(FormatMeta(other));
  Pass(Milliseconds(2000));
  EXPECT_EQ(told_.back().value(), other);
}

}  // namespace
}  // namespace firn
