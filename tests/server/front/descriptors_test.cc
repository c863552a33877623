#include "server/front/net/descriptors.h"

#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace firn::front {
namespace {

// A process that can open ten more descriptors.
class DescriptorsTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before_), 0);
    int number = 0;
    for (int free = 0; free < 10; ++number) free += fcntl(number, F_GETFD) < 0 ? 1 : 0;
    const rlimit low{static_cast<rlim_t>(number), before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  }
  void TearDown() override {
    for (const int one : open_) close(one);
    setrlimit(RLIMIT_NOFILE, &before_);
  }

  int Open() {
    const int opened = dup(STDERR_FILENO);
    if (opened >= 0) open_.push_back(opened);
    return opened;
  }
  void CloseLowest() {
    close(open_.front());
    open_.erase(open_.begin());
  }

  rlimit before_{};
  std::vector<int> open_;
};

TEST_F(DescriptorsTest, CountsFreeDescriptors) {
  for (int free = 10; free >= 0; --free) {
    EXPECT_TRUE(CanOpen(STDERR_FILENO, free)) << free;
    EXPECT_FALSE(CanOpen(STDERR_FILENO, free + 1)) << free;
    EXPECT_EQ(Open() >= 0, free > 0);
  }
}

TEST_F(DescriptorsTest, ALowNumberDoesNotCountAsSpareRoom) {
  while (Open() >= 0) EXPECT_EQ(LeavesSpare(open_.back(), 4), open_.size() <= 6);
  CloseLowest();
  EXPECT_FALSE(LeavesSpare(Open(), 4)) << "nine of ten are in use, and the lowest again";
  for (int i = 0; i < 5; ++i) CloseLowest();
  EXPECT_TRUE(LeavesSpare(Open(), 4));
  EXPECT_FALSE(LeavesSpare(Open(), 4));
}

}  // namespace
}  // namespace firn::front
