#include <utility>

#include "server/front/net/connection.h"
#include "tests/server/front/connection_rig.h"

// The state that a connection keeps for the protocol that its first bytes have selected.

namespace firn::front {
namespace {

TEST_F(ConnectionTest, KeepsTheProtocolsSessionForItsOwnLife) {
  Open();
  Say("A\nB\n");
  Say("C\n");
  EXPECT_EQ(lines_->of_session, 3);
  wire_->PeerCloses();
  Open();
  Say("A\n");
  EXPECT_EQ(lines_->of_session, 1);
}

TEST_F(ConnectionTest, CountsOpenConnectionsByProtocol) {
  const auto counts = [this](ProtocolKind kind) {
    const LoopCounters& all = io_.counters;
    return std::pair(all.recognised[kind].Get(), all.ended[kind].Get());
  };
  Open();
  EXPECT_EQ(counts(ProtocolKind::kHttp), std::pair(0ul, 0ul));
  Say("A\n");
  EXPECT_EQ(counts(ProtocolKind::kHttp), std::pair(1ul, 0ul));
  wire_->PeerCloses();
  EXPECT_EQ(counts(ProtocolKind::kHttp), std::pair(1ul, 1ul));
  Open();
  Say("*1\r\n");  // not served here
  wire_->PeerCloses();
  EXPECT_EQ(counts(ProtocolKind::kRedis), std::pair(0ul, 0ul));
}

// Other callers may wait for the ids that it holds, or for its end.
TEST_F(ConnectionTest, RetriesAParkedRequestWhileItsPeerReadsNothing) {
  Open();
  wire_->takes = 0;
  Say("A\nWAIT\nB\n");
  limits_.output_waiting_bytes_max = 1;
  TryParkedAgain();
  EXPECT_EQ(lines_->attempts, 2);
  Pass(limits_.issue_wait_ms);
  TryParkedAgain();
  EXPECT_FALSE(parked_);
  wire_->Reads(2);
  wire_->Reads(5);
  EXPECT_EQ(wire_->sent, "A\nLATE\n") << "the next request waits until the peer reads";
  EndTurn();
  wire_->Reads(2);
  EXPECT_EQ(wire_->sent, "A\nLATE\nB\n");
}

TEST_F(ConnectionTest, PassesTheRemainingTimeToAParkedRequest) {
  Open();
  Say("WAIT\n");
  EXPECT_EQ(lines_->patience, std::chrono::milliseconds(limits_.issue_wait_ms));
  Pass(20);
  TryParkedAgain();
  EXPECT_EQ(lines_->patience, std::chrono::milliseconds(limits_.issue_wait_ms - 20));
  lines_->waits = false;
  Pass(20);
  TryParkedAgain();
  Say("B\n");
  EXPECT_EQ(lines_->patience, std::chrono::milliseconds(limits_.issue_wait_ms));
}

}  // namespace
}  // namespace firn::front
