#pragma once

#include <deque>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "server/front/net/front_door.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/process.h"

namespace firn::front {

// A front door on a free loopback port, with Thrift behind it.
class FrontDoorTest : public testing::Test {
 protected:
  static constexpr Milliseconds kPatience{20'000};

  void Open(FrontDoorOptions options = {}) {
    options.limits = issuing_.limits;
    door_.emplace(options, SystemClock(), [this] { return MakeProtocols(); });
    ASSERT_TRUE(door_->Start().ok());
  }
  ProtocolSet MakeProtocols() {
    DeskCounters& counters = counters_.emplace_back();
    ProtocolSet set;
    set.thrift_binary = MakeThriftProtocol(ThriftCoding::kBinary, issuing_.backend, counters);
    set.thrift_compact = MakeThriftProtocol(ThriftCoding::kCompact, issuing_.backend, counters);
    return set;
  }

  // The id that a peer gets for one more call.
  int64_t IdFor(RawPeer& peer, ThriftCoding coding = ThriftCoding::kBinary) {
    ThriftCalls calls(coding);
    EXPECT_TRUE(peer.Send(calls.GetId("slow")));
    return calls.Answer(ReceiveFrame(peer)).recv_getId();
  }
  static std::string ReceiveFrame(RawPeer& peer) {
    std::string frame = peer.Receive(4);
    if (frame.size() < 4) return frame;
    const auto byte = [&frame](size_t i) { return static_cast<uint8_t>(frame[i]); };
    return frame + peer.Receive(size_t{byte(1)} << 16 | size_t{byte(2)} << 8 | byte(3));
  }
  void ExpectGoodClientIsServed(const std::string& tag = "slow") {
    RawPeer peer(door_->port());
    ThriftCalls calls;
    EXPECT_TRUE(peer.Send(calls.GetId(tag)));
    EXPECT_GT(calls.Answer(ReceiveFrame(peer)).recv_getId(), 0);
  }
  bool Closes(CloseCause cause, uint64_t count = 1) {
    return Eventually(kPatience, [&] { return door_->totals().closed_by(cause) == count; });
  }

  Issuing issuing_;
  std::deque<DeskCounters> counters_;
  std::optional<FrontDoor> door_;
};

}  // namespace firn::front
