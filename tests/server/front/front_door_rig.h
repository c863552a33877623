#pragma once

#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "server/front/net/front_door.h"
#include "tests/server/front/form.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/process.h"

namespace firn::front {

// A peer that sends in the form of this run; in the form `twice` it sends complete calls twice.
class Peer : public RawPeer {
 public:
  explicit Peer(uint16_t port, const char* from = "127.0.0.1")
      : RawPeer(port, from, ChosenForm() == Form::kTls ? TlsOfForm().client : nullptr) {}

  // On a Unix socket.
  explicit Peer(const std::string& path) : RawPeer(path) {}

  bool Send(std::string_view bytes) {
    const bool twice = ChosenForm() == Form::kTwice && IsCalls(bytes);
    if (!twice) return RawPeer::Send(bytes);
    std::string doubled;
    for (std::string_view left = bytes; !left.empty(); left.remove_prefix(FrameSize(left))) {
      for (int i = 0; i < 2; ++i) doubled += left.substr(0, FrameSize(left));
      const std::lock_guard lock(mutex_);
      ++answered_twice_;
    }
    return RawPeer::Send(doubled);
  }

  // Returns the answer to the next call.
  std::string ReceiveFrame() {
    std::string frame = ReceiveOne();
    {
      const std::lock_guard lock(mutex_);
      if (answered_twice_ == 0) return frame;
      --answered_twice_;
    }
    const std::string second = ReceiveOne();
    EXPECT_NE(frame, "") << "the first of two";
    return second;
  }

 private:
  static size_t FrameSize(std::string_view bytes) {
    const auto byte = [&](size_t i) { return size_t{static_cast<uint8_t>(bytes[i])}; };
    return 4 + (byte(0) << 24 | byte(1) << 16 | byte(2) << 8 | byte(3));
  }
  static bool IsCalls(std::string_view bytes) {
    for (; !bytes.empty(); bytes.remove_prefix(FrameSize(bytes))) {
      if (bytes.size() < 6 || FrameSize(bytes) > bytes.size()) return false;
      const auto coding = static_cast<uint8_t>(bytes[4]);
      if (coding != 0x80 && coding != 0x82) return false;
    }
    return true;
  }
  std::string ReceiveOne() {
    const std::string length = Receive(4);
    return length.size() < 4 ? length : length + Receive(FrameSize(length) - 4);
  }

  std::mutex mutex_;
  int answered_twice_ = 0;  // calls that were sent twice; under mutex_
};

// A front with Thrift on a free loopback port.
class FrontDoorTest : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto why = SenselessHere(); !why.empty()) GTEST_SKIP() << why;
  }

  // The number that the `n`th call gets, or under which it is counted.
  static int64_t Number(int64_t n) { return ChosenForm() == Form::kTwice ? 2 * n : n; }

  void Open(FrontDoorOptions options = {}) {
    options.limits = issuing_.limits;
    if (ChosenForm() == Form::kTls) options.tls.emplace(TlsOfForm().cert, TlsOfForm().key);
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

  // Returns the id that a peer gets for one more call.
  int64_t IdFor(Peer& peer, ThriftCoding coding = ThriftCoding::kBinary) {
    ThriftCalls calls(coding);
    EXPECT_TRUE(peer.Send(calls.GetId("slow")));
    return calls.Answer(peer.ReceiveFrame()).recv_getId();
  }
  void ExpectGoodClientIsServed(const std::string& tag = "slow") {
    Peer peer(door_->port());
    ThriftCalls calls;
    EXPECT_TRUE(peer.Send(calls.GetId(tag)));
    EXPECT_GT(calls.Answer(peer.ReceiveFrame()).recv_getId(), 0);
  }
  bool Closes(CloseCause cause, uint64_t count = 1) {
    return Eventually(kPatience, [&] { return door_->totals().closed_by(cause) == count; });
  }

  Issuing issuing_;
  std::deque<DeskCounters> counters_;
  std::optional<FrontDoor> door_;
};

}  // namespace firn::front
