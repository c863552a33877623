#include "server/restore_notice.h"

#include <string>

#include <gtest/gtest.h>

namespace firn {
namespace {

class RestoreNoticeTest : public testing::Test {
 protected:
  // Whether the notice logs the command after `step`.
  bool LogsAfter(Milliseconds step, bool required = true) {
    now_ = now_ + step;
    return !notice_
                .Take(now_, required,
                      [this] {
                        ++requests_;
                        return command_;
                      })
                .empty();
  }
  // The time until the notice logs the command, which is required throughout.
  Milliseconds UntilLogged() {
    const BootMs begun = now_;
    while (!LogsAfter(kTurn)) {
      if (now_ - begun > Milliseconds(120'000)) return Milliseconds(-1);
    }
    return now_ - begun;
  }

  static constexpr Milliseconds kTurn{100};
  BootMs now_{1'000'000};
  std::string command_ = "firn restore --uuid=u --from=/state";
  int requests_ = 0;
  RestoreNotice notice_;
};

TEST_F(RestoreNoticeTest, LogsNothingWhileNoRestoreIsRequired) {
  for (int i = 0; i < 1'000; ++i) EXPECT_FALSE(LogsAfter(kTurn, false));
  EXPECT_EQ(requests_, 0);
}

// `firn restore --again` on an intact cluster.
TEST_F(RestoreNoticeTest, LogsNothingIfARestoreIsRequiredBriefly) {
  for (int i = 0; i < 5; ++i) {
    EXPECT_FALSE(LogsAfter(kTurn));
    EXPECT_FALSE(LogsAfter(RestoreNotice::kLasting - kTurn));
    EXPECT_FALSE(LogsAfter(RestoreNotice::kLasting, false));
  }
}

TEST_F(RestoreNoticeTest, LogsTheCommandOnceItHasBeenRequiredForSomeTime) {
  EXPECT_FALSE(LogsAfter(kTurn));
  EXPECT_EQ(UntilLogged(), RestoreNotice::kLasting);
  EXPECT_EQ(UntilLogged(), RestoreNotice::kLogEvery) << "then once a minute";
  EXPECT_EQ(requests_, 2);
}

TEST_F(RestoreNoticeTest, CountsTheTimeAgainAfterABreak) {
  EXPECT_FALSE(LogsAfter(kTurn));
  EXPECT_TRUE(LogsAfter(RestoreNotice::kLasting));
  EXPECT_FALSE(LogsAfter(RestoreNotice::kLogEvery, false));
  EXPECT_FALSE(LogsAfter(kTurn));
  EXPECT_EQ(UntilLogged(), RestoreNotice::kLasting);
}

// A registry that does not answer each time.
TEST_F(RestoreNoticeTest, ShortBreaksDelayNothing) {
  EXPECT_FALSE(LogsAfter(kTurn));
  const Milliseconds part = RestoreNotice::kLasting / 3;
  EXPECT_FALSE(LogsAfter(part));
  EXPECT_FALSE(LogsAfter(part, false));
  EXPECT_TRUE(LogsAfter(part));
}

}  // namespace
}  // namespace firn
