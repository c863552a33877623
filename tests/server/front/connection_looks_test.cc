// When a connection parses an incomplete request again.

#include "tests/server/front/connection_rig.h"

namespace firn::front {
namespace {

TEST_F(ConnectionTest, ParsesAgainWhenTheKnownLengthHasArrived) {
  Open();
  lines_->whole = 50;
  lines_->asks = true;
  for (int i = 0; i < 49; ++i) Say("A");
  EXPECT_EQ(lines_->looks, 1);
  Say("\nB\n");
  EXPECT_EQ(wire_->sent.size(), 52u);
  Say("C\n");
  EXPECT_TRUE(wire_->sent.ends_with("\nB\nC\n")) << "a length must not apply to the next request";
}

TEST_F(ConnectionTest, ParsesAgainWhenTheProtocolExpectsAWholeRequest) {
  Open();
  lines_->asks = true;
  for (int i = 0; i < 50; ++i) Say("A");
  EXPECT_EQ(lines_->looks, 1);
  Say("\n");
  EXPECT_EQ(wire_->sent.size(), 51u);
}

TEST_F(ConnectionTest, ClosesAPeerThatCausesManyFailedParses) {
  Open();
  for (int i = 0; i < 2000 && !wire_->finished; ++i) Say("A");
  EXPECT_TRUE(wire_->finished);
  EXPECT_LT(lines_->looks, 2000);
  wire_->PeerCloses();
  EXPECT_EQ(Closed(CloseCause::kHalfRequest), 1u);
}

TEST_F(ConnectionTest, AnswersAPeerWhoseRequestFillsTheInput) {
  Open();
  while (!wire_->finished) Say(std::string(wire_->room(), 'A'));
  EXPECT_EQ(wire_->sent, "TOO LONG\n");
  EXPECT_TRUE(wire_->finished);
  wire_->PeerCloses();
  EXPECT_EQ(Closed(CloseCause::kHttpTooLarge), 1u);
}

}  // namespace
}  // namespace firn::front
