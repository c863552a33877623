#include "tools/firn/drill/drill_record.h"

#include <gtest/gtest.h>

#include "common/id/explain.h"

namespace firn {
namespace {

constexpr WallMs kNow{1'750'000'000'000};

int64_t IdOf(uint64_t machine, Milliseconds later, uint64_t sequence = 0) {
  const Layout layout = Layout::Firn();
  const ComposeRequest request{.time = kNow + later, .machine = machine, .sequence = sequence};
  return *Compose(request, layout, RackSplit::Default(layout), {});
}

ClientLoadReport Calls(const std::vector<int64_t>& ids, int failed = 0) {
  ClientLoadReport report{.record = LoadRecord(1'000), .seconds = 1};
  for (const int64_t id : ids) report.record.Answered(2'000'000, &id, 1, true);
  for (int i = 0; i < failed; ++i) report.record.Failed(9'000'000, Unavailable("cut off"), true);
  return report;
}

class DrillRecordTest : public testing::Test {
 protected:
  void Second(const std::vector<int64_t>& ids, int failed = 0) {
    record_.Add(++second_, Calls(ids, failed), kNow);
  }

  double second_ = 0;
  DrillRecord record_{Layout::Firn(), 100};
};

TEST_F(DrillRecordTest, FindsAnIdThatIsIssuedAgainMuchLater) {
  const int64_t id = IdOf(1, Milliseconds(5));
  Second({id, IdOf(1, Milliseconds(6))});
  Second({IdOf(1, Milliseconds(7))});
  EXPECT_EQ(record_.CountDuplicates(), 0U);
  Second({id});
  EXPECT_EQ(record_.CountDuplicates(), 1U);
  EXPECT_TRUE(record_.kept_all());
}

TEST_F(DrillRecordTest, CountsIdsThatDoNotRiseFromSecondToSecond) {
  // Within a second, the ids of several threads' calls are in no order.
  Second({IdOf(1, Milliseconds(9)), IdOf(1, Milliseconds(5)), IdOf(2, Milliseconds(900))});
  Second({IdOf(1, Milliseconds(10)), IdOf(3, Milliseconds(1))});
  EXPECT_EQ(record_.out_of_order(), 0U);
  Second({IdOf(1, Milliseconds(10), 1), IdOf(2, Milliseconds(899))});
  EXPECT_EQ(record_.out_of_order(), 1U);
  EXPECT_EQ(record_.machines().size(), 3U);
  EXPECT_EQ(record_.machines().at(3).first_s, 2);
  EXPECT_EQ(record_.machines().at(2).last_s, 3);
}

TEST_F(DrillRecordTest, DoesNotCheckTheOrderOfSegmentNumbers) {
  Second({5'000, 5'001});
  Second({1, 2});
  EXPECT_EQ(record_.out_of_order(), 0U);
  EXPECT_EQ(record_.judged(), 0U);
  EXPECT_EQ(record_.ids(), 4U);
}

TEST_F(DrillRecordTest, CountsCallsAndKeepsFailureReasons) {
  Second({1, 2}, 3);
  EXPECT_EQ(record_.calls(), 5U);
  EXPECT_EQ(record_.failed(), 3U);
  EXPECT_EQ(record_.reasons().size(), 1U);
  EXPECT_NEAR(record_.longest_ms(), 9, 0.2);
}

TEST_F(DrillRecordTest, ReportsThatItDidNotKeepEveryId) {
  for (int i = 0; i < 100; ++i) Second({i});
  EXPECT_TRUE(record_.kept_all());
  Second({1'000});
  EXPECT_FALSE(record_.kept_all());
  EXPECT_EQ(record_.ids(), 100U);
}

TEST_F(DrillRecordTest, DrawsMarksAndEscapesTheirText) {
  Second({1, 2});
  record_.Mark(1.5, "pulled <b>server</b> & waited");
  Second({3}, 1);
  const std::string svg = DrillPicture(record_, "a drill");
  EXPECT_TRUE(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
  EXPECT_NE(svg.find(">pulled &lt;b&gt;server&lt;/b&gt; &amp; waited<"), std::string::npos) << svg;
  EXPECT_NE(svg.find("class='failed'"), std::string::npos);
  EXPECT_NE(svg.find("class='mark'"), std::string::npos);
  EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
}

TEST_F(DrillRecordTest, DrawsAnEmptyDrill) {
  EXPECT_EQ(DrillPicture(record_, "").find("nan"), std::string::npos);
  EXPECT_EQ(DrillPicture(record_, "").find("inf"), std::string::npos);
}

}  // namespace
}  // namespace firn
