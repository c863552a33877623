#include "server/store/dated_source.h"

#include <deque>
#include <functional>
#include <optional>

#include "tests/server/store/ledger_rig.h"

namespace firn {
namespace {

// A server of a cluster in memory, in which the wall clock is also the registry's clock.
class DatedSourceTest : public testing::Test {
 protected:
  DatedSourceTest() {
    cluster_.Do({Write::Create(kClockPath, "", Lifetime::kPersistent)});
    const Status made = cluster_.store().Create(day_);
    EXPECT_TRUE(made.ok()) << made;
  }

  Result<Range> Take(int64_t size = 5, Milliseconds asleep = Milliseconds(0)) {
    std::optional<Result<Range>> told;
    source_.Take(day_, size, [&](Result<Range> range) { told = std::move(range); });
    Run();
    cluster_.clock().Advance(asleep);
    if (!host_.Until([&] { return told.has_value(); })) return Internal("no answer");
    return *told;
  }
  Status GiveBack(Range tail) {
    std::optional<Status> told;
    source_.GiveBack(day_, tail, [&](Status status) { told = std::move(status); });
    Run();
    return host_.Until([&] { return told.has_value(); }) ? *told : Internal("no answer");
  }
  void Run() {
    for (; !tasks_.empty(); tasks_.pop_front()) tasks_.front()();
  }
  int64_t Today() { return day_.Dated()->PeriodAt(cluster_.clock().Wall(), TimeZone::Utc()); }
  int64_t TimesAsked() { return cluster_.tree().Peek(kClockPath)->stat.version; }

  TagDefinition day_{.name = "day", .strategy = "dated"};
  LedgerCluster cluster_;
  LedgerHost host_{cluster_};
  RegistryTime time_;
  std::deque<std::function<void()>> tasks_;
  DatedSource source_{host_.registry(), host_.ledger(),
                      [this](std::function<void()> task) { tasks_.push_back(std::move(task)); },
                      cluster_.clock(), time_};
};

TEST_F(DatedSourceTest, TakesRangesOfTheDayOfTheRegistrysClock) {
  const int64_t first = day_.Dated()->First(Today());
  EXPECT_EQ(Take().value(), (Range{first, first + 5}));
  EXPECT_EQ(Take().value(), (Range{first + 5, first + 10}));
  EXPECT_EQ(TimesAsked(), 1) << "one reading of the clock serves for a while";
  cluster_.clock().Advance(std::chrono::hours(24));
  EXPECT_EQ(Take().value().begin, day_.Dated()->First(Today()));
  EXPECT_EQ(TimesAsked(), 2);
}

TEST_F(DatedSourceTest, FollowsARegistryWhoseClockIsSet) {
  const int64_t today = Today();
  ASSERT_TRUE(Take().ok());
  cluster_.clock().StepWall(std::chrono::hours(48));
  EXPECT_EQ(day_.Dated()->PeriodOf(Take().value().begin), today) << "by the time that was read";
  cluster_.clock().Advance(DatedSource::kFresh + Milliseconds(1));
  const Range ahead = Take().value();
  EXPECT_EQ(day_.Dated()->PeriodOf(ahead.begin), Today());
  cluster_.clock().StepWall(std::chrono::hours(-48));
  cluster_.clock().Advance(DatedSource::kFresh + Milliseconds(1));
  EXPECT_EQ(Take().value().begin, ahead.end) << "a period that was reached is not left";
}

TEST_F(DatedSourceTest, RefusesDatesAheadWhenTheLocalClockContradictsTheRegistrys) {
  ASSERT_TRUE(Take().ok());
  const VirtualClock own(cluster_.clock().Wall(), cluster_.clock().Boot());
  RegistryTime heard;
  DatedSource source(
      host_.registry(), host_.ledger(), [](std::function<void()> task) { task(); }, own, heard);
  const int64_t high = day_.Dated()->PeriodOf(Take().value().begin);
  const auto take = [&] {
    std::optional<Result<Range>> told;
    source.Take(day_, 5, [&](Result<Range> range) { told = std::move(range); });
    return host_.Until([&] { return told.has_value(); }) ? *told : Internal("no answer");
  };
  cluster_.clock().StepWall(std::chrono::days(300));
  EXPECT_EQ(take().code(), Code::kUnavailable);
  cluster_.clock().StepWall(-std::chrono::days(300));
  heard.Note(own.Wall(), own.Boot());
  EXPECT_EQ(day_.Dated()->PeriodOf(take().value().begin), high);
}

TEST_F(DatedSourceTest, IgnoresATimeWhoseAnswerTookTooLong) {
  const Result<Range> taken = Take(5, std::chrono::hours(24));
  EXPECT_EQ(taken.code(), Code::kUnavailable);
  EXPECT_FALSE(time_.At(cluster_.clock().Boot()).has_value());
  EXPECT_EQ(day_.Dated()->PeriodOf(Take().value().begin), Today());
}

TEST_F(DatedSourceTest, RefusesRangesWithoutTheRegistry) {
  host_.registry().Disconnect();
  EXPECT_EQ(Take().code(), Code::kUnavailable);
  host_.registry().Reconnect();
  EXPECT_TRUE(Take().ok());
}

TEST_F(DatedSourceTest, GivesBackTheLastTail) {
  const Range taken = Take().value();
  EXPECT_EQ(GiveBack({taken.begin + 2, taken.end}), Status());
  EXPECT_EQ(Take().value().begin, taken.begin + 2);
}

TEST_F(DatedSourceTest, UsesTheZoneOfTheTagsNode) {
  const Range taken = Take().value();
  cluster_.Edit("day", [](TagNode& node) { node.tag.zone = "+23:00"; });  // already tomorrow there
  const Range next = Take().value();
  EXPECT_GT(day_.Dated()->PeriodOf(next.begin), day_.Dated()->PeriodOf(taken.begin));
  cluster_.Edit("day", [](TagNode& node) { node.tag.zone = "-11:00"; });
  EXPECT_EQ(Take().value().begin, next.end) << "it never goes back";
}

TEST_F(DatedSourceTest, RefusesToWriteAStartOnAFutureDay) {
  StoredTag stored = *cluster_.store().Read("day");
  TagDefinition after = stored.tag();
  after.start = day_.Dated()->First(Today()) + 100;
  EXPECT_TRUE(cluster_.store().Edit(stored, after).ok());
  EXPECT_EQ(Take().value().begin, *after.start);
  stored = *cluster_.store().Read("day");
  after.start = day_.Dated()->End(Today()) + 1;
  EXPECT_EQ(cluster_.store().Edit(stored, after).code(), Code::kInvalid);
}

}  // namespace
}  // namespace firn
