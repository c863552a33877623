#include "server/issue/rejection_handler.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class LoggingRejectionHandlerTest : public testing::Test {
 protected:
  void Refuse(Reason reason, int times = 1) {
    for (int i = 0; i < times; ++i) handler_.OnRefusal({.tag = "order"}, {reason, "no luck"});
  }

  VirtualClock clock_{WallMs(0)};
  std::vector<std::string> lines_;
  LoggingRejectionHandler handler_{
      clock_, [this](const std::string& line, const Request& request, const Refusal& refusal) {
        lines_.push_back(line);
        EXPECT_EQ(request.tag.substr(0, 5), "order");
        EXPECT_EQ(refusal.message, "no luck");
      }};
};

TEST_F(LoggingRejectionHandlerTest, LogsARefusedCallAndItsReason) {
  Refuse(Reason::kNotReady);
  EXPECT_THAT(lines_, ElementsAre("refused 1 of tag 'order': NOT_READY: no luck"));
}

TEST_F(LoggingRejectionHandlerTest, LogsTheTraceOfTheCall) {
  handler_.OnRefusal({.tag = "order", .trace_id = "4bf92f"}, {Reason::kNotReady, "no luck"});
  EXPECT_THAT(lines_, ElementsAre("refused 1 of tag 'order': NOT_READY: no luck (trace 4bf92f)"));
}

// Tags come from untrusted clients: a tag must not be able to add a line to the log.
TEST_F(LoggingRejectionHandlerTest, ATagCannotWriteASecondLine) {
  handler_.OnRefusal({.tag = "order\nE1121 all is lost\x1b[2J"}, {Reason::kUnknownTag, "no luck"});
  EXPECT_THAT(lines_, ElementsAre("refused 1 of tag 'order\\x0aE1121 all is lost\\x1b[2J': "
                                  "UNKNOWN_TAG: no luck"));
}

TEST_F(LoggingRejectionHandlerTest, LimitsLinesPerReasonAndWindow) {
  Refuse(Reason::kNotReady, 1'000);
  Refuse(Reason::kClock, 2);
  EXPECT_THAT(lines_, SizeIs(LoggingRejectionHandler::kLinesPerWindow + 2));
}

TEST_F(LoggingRejectionHandlerTest, LogsTheSuppressedCountInTheNextWindow) {
  Refuse(Reason::kNotReady, 1'000);
  clock_.Advance(LoggingRejectionHandler::kWindow);
  lines_.clear();
  Refuse(Reason::kNotReady, 2);
  ASSERT_THAT(lines_, SizeIs(2));
  EXPECT_THAT(lines_[0], HasSubstr("and 997 like it before"));
  EXPECT_THAT(lines_[1], Not(HasSubstr("like it")));
}

}  // namespace
}  // namespace firn
