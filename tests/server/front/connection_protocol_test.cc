#include <utility>

#include "server/front/net/connection.h"
#include "tests/server/front/connection_rig.h"

// What a connection keeps of the protocol that its first bytes have chosen.

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
  Say("*1\r\n");  // not served by this door
  wire_->PeerCloses();
  EXPECT_EQ(counts(ProtocolKind::kRedis), std::pair(0ul, 0ul));
}

}  // namespace
}  // namespace firn::front
