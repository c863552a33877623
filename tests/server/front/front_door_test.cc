#include "server/front/net/front_door.h"

#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <thrift/TApplicationException.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TSocket.h>

#include "server/front/net/stranger.h"
#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/process.h"
#include "tests/support/seed.h"

namespace firn::front {
namespace {

using std::string_literals::operator""s;

constexpr Milliseconds kPatience{20'000};

// A front door on a free loopback port, with Thrift behind it.
class FrontDoorTest : public testing::Test {
 protected:
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
  void ExpectGoodClientIsServed() {
    RawPeer peer(door_->port());
    EXPECT_GT(IdFor(peer), 0);
  }
  bool Closes(CloseCause cause, uint64_t count = 1) {
    return Eventually(kPatience, [&] { return door_->totals().closed_by(cause) == count; });
  }

  Issuing issuing_;
  std::deque<DeskCounters> counters_;
  std::optional<FrontDoor> door_;
};

TEST_F(FrontDoorTest, ServesBothCodingsOnOnePort) {
  Open();
  RawPeer binary(door_->port()), compact(door_->port());
  EXPECT_EQ(IdFor(binary), 1);
  EXPECT_EQ(IdFor(compact, ThriftCoding::kCompact), 2);
  EXPECT_EQ(IdFor(binary), 3);
  EXPECT_EQ(door_->totals().requests, 3u);
  EXPECT_EQ(door_->totals().open(), 2u);
}

TEST_F(FrontDoorTest, AnswersManyRequestsInTheirOrder) {
  Open();
  RawPeer peer(door_->port());
  ThriftCalls calls;
  std::string many;
  for (int i = 0; i < 5000; ++i) many += calls.GetId("slow");
  std::thread sender([&] { EXPECT_TRUE(peer.Send(many)); });
  for (int64_t i = 1; i <= 5000; ++i) {
    ASSERT_EQ(calls.Answer(ReceiveFrame(peer)).recv_getId(), i);
  }
  sender.join();
}

TEST_F(FrontDoorTest, AnswersRequestsThatArriveByteForByte) {
  Open();
  RawPeer peer(door_->port());
  ThriftCalls calls;
  for (const char byte : calls.GetId("slow")) ASSERT_TRUE(peer.Send({&byte, 1}));
  EXPECT_EQ(calls.Answer(ReceiveFrame(peer)).recv_getId(), 1);
}

TEST_F(FrontDoorTest, ServesOthersWhileOneWaits) {
  issuing_.limits.issue_wait_ms = 60'000;
  Open();
  issuing_.slow->waits = true;
  RawPeer waiting(door_->port()), other(door_->port());
  ThriftCalls calls, other_calls;
  ASSERT_TRUE(waiting.Send(calls.GetId("slow")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return issuing_.slow->asked > 3; }));
  ASSERT_TRUE(other.Send(other_calls.GetId("order")));
  EXPECT_GT(other_calls.Answer(ReceiveFrame(other)).recv_getId(), 0);
  issuing_.slow->waits = false;
  EXPECT_EQ(calls.Answer(ReceiveFrame(waiting)).recv_getId(), 1);
}

TEST_F(FrontDoorTest, RefusesACallThatHasWaitedTooLong) {
  issuing_.limits.issue_wait_ms = 20;
  Open();
  issuing_.slow->waits = true;
  RawPeer peer(door_->port());
  EXPECT_THROW(IdFor(peer), wire::Refusal);
  issuing_.slow->waits = false;
  EXPECT_EQ(IdFor(peer), 1);
}

TEST_F(FrontDoorTest, ClosesAtAFrameBeyondTheLimit) {
  Open();
  RawPeer peer(door_->port());
  ASSERT_TRUE(peer.Send("\0\1\0\1\x80\1\0\1"s));
  EXPECT_TRUE(peer.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kFrameTooLarge));
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, ClosesAtAnUnknownProtocol) {
  Open();
  for (const auto& hello : {"\x16\3\1\0\xa5\1\0\0"s, "*1\r\n$4\r\nPING\r\n"s, "\x80\1\0\1"s}) {
    RawPeer peer(door_->port());
    ASSERT_TRUE(peer.Send(hello));
    EXPECT_TRUE(peer.SeesClose());
  }
  EXPECT_TRUE(Closes(CloseCause::kUnknownProtocol, 3));
}

TEST_F(FrontDoorTest, TellsThriftWithoutFramesToUseThem) {
  Open();
  using apache::thrift::transport::TSocket;
  const auto socket = std::make_shared<TSocket>("127.0.0.1", door_->port());
  socket->open();
  wire::IdServiceClient client(std::make_shared<apache::thrift::protocol::TBinaryProtocol>(socket));
  try {
    client.getId("order");
    FAIL() << "no id without frames";
  } catch (const apache::thrift::TApplicationException& told) {
    EXPECT_NE(std::string(told.what()).find("TFramedTransport"), std::string::npos) << told.what();
  }
  EXPECT_TRUE(Closes(CloseCause::kUnknownProtocol));
}

TEST_F(FrontDoorTest, SaysWhatAStrangerSpeaksAndNotTooOften) {
  std::mutex mutex;
  std::vector<std::string> lines;
  FrontDoorOptions options;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  Open(options);
  for (int i = 0; i < 20; ++i) {
    RawPeer peer(door_->port());
    ASSERT_TRUE(peer.Send("*1\r\n$4\r\nPING\r\n"));
    EXPECT_TRUE(peer.SeesClose());
  }
  EXPECT_TRUE(Closes(CloseCause::kUnknownProtocol, 20));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("127.0.0.1:")) << lines[0];
  EXPECT_NE(lines[0].find(" speaks Redis: "), std::string::npos) << lines[0];
}

TEST(Stranger, IsKnownByItsFirstBytes) {
  EXPECT_EQ(SpeechOfStranger("\x16\3\1\0\xa5"s), "TLS, and this port is a plain one");
  EXPECT_EQ(SpeechOfStranger("\x80\1\0\1"s), "binary Thrift without frames");
  EXPECT_EQ(SpeechOfStranger("\x82\x21\0"s), "compact Thrift without frames");
  EXPECT_EQ(SpeechOfStranger("\0\0\0\5getId"s), "Thrift's old binary form, without a version");
  EXPECT_EQ(SpeechOfStranger("hello"), "nothing that is served here");
  OutBuffer out;
  for (const auto& first : {"hello"s, "\x16\3\1"s, "*1\r\n"s, ""s}) TellStranger(first, out);
  EXPECT_TRUE(out.empty());
  // Torn in the middle of the name, or with a name that is too long to be one.
  for (const auto& first : {"\x80\1"s, "\x80\1\0\1\0\0\0\5get"s, "\x80\1\0\1\xff\xff\xff\xff"s}) {
    TellStranger(first, out);
    EXPECT_FALSE(out.empty());
    out.Clear();
  }
}

TEST_F(FrontDoorTest, ClosesConnectionsBeyondTheLimitAndServesTheOthers) {
  issuing_.limits.connections_max = 2;
  Open();
  std::optional<RawPeer> first(door_->port());
  RawPeer second(door_->port());
  EXPECT_EQ(IdFor(*first), 1);
  EXPECT_EQ(IdFor(second), 2);
  RawPeer third(door_->port());
  EXPECT_TRUE(third.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kTooMany));
  first.reset();
  EXPECT_TRUE(Closes(CloseCause::kPeer));
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, ClosesIdleAndHalfRequests) {
  issuing_.limits.idle_ms = 300;
  issuing_.limits.half_request_ms = 200;
  Open();
  RawPeer idle(door_->port()), half(door_->port());
  ASSERT_TRUE(half.Send("\0\0\0"s));
  EXPECT_TRUE(half.SeesClose());
  EXPECT_TRUE(idle.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kHalfRequest));
  EXPECT_TRUE(Closes(CloseCause::kIdle));
}

TEST_F(FrontDoorTest, StopsReadingFromAPeerThatNeverReads) {
  // Long beside the making of the answers, or it is closed before enough of them wait.
  issuing_.limits.half_request_ms = 2'000;
  Open();
  RawPeer peer(door_->port());
  peer.ReadSlowly();
  ThriftCalls calls;
  std::string many;
  for (int i = 0; i < 20; ++i) {
    many += calls.Frame([](wire::IdServiceClient& c) { c.send_getIds("slow", 100'000); });
  }
  ASSERT_TRUE(peer.Send(many));
  EXPECT_TRUE(Closes(CloseCause::kUnread));
  // Sixteen megabytes were asked for; what waited was about one, and the socket's own buffer.
  EXPECT_GT(door_->totals().output_paused, 0u);
  EXPECT_LT(issuing_.slow->next, 1'500'000);
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, GoesOnAfterItWasOutOfDescriptors) {
  issuing_.limits.spare_descriptors = 0;
  Open();
  ExpectGoodClientIsServed();
  rlimit before{};
  getrlimit(RLIMIT_NOFILE, &before);
  // Peers and server live in one process: leave room for the peers' sockets only.
  const int lowest_free = dup(0);
  close(lowest_free);
  constexpr int kPeers = 6;
  std::vector<std::unique_ptr<RawPeer>> peers;
  const rlimit low{static_cast<rlim_t>(lowest_free + kPeers + 1), before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &low), 0);
  for (int i = 0; i < kPeers; ++i) peers.push_back(std::make_unique<RawPeer>(door_->port()));
  EXPECT_TRUE(Eventually(kPatience, [&] { return door_->totals().accept_failed > 0; }));
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  for (const auto& peer : peers) {
    if (peer->connected()) {
      EXPECT_GT(IdFor(*peer), 0) << "whoever waited is served";
    }
  }
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, ServesOthersBesideThousandsOfHalfRequests) {
  constexpr size_t kPeers = 3000;
  Open({.io_threads = 2});
  std::vector<std::unique_ptr<RawPeer>> peers;
  const std::string call = ThriftCalls().GetId("slow");
  for (size_t i = 0; i < kPeers; ++i) {
    peers.push_back(std::make_unique<RawPeer>(door_->port()));
    ASSERT_TRUE(peers.back()->Send(call.substr(0, 1 + i % (call.size() - 1))));
  }
  ExpectGoodClientIsServed();
  EXPECT_TRUE(Eventually(kPatience, [&] { return door_->totals().open() >= kPeers; }));
  peers.clear();
  EXPECT_TRUE(Eventually(kPatience, [&] { return door_->totals().open() == 0; }));
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, SurvivesRandomBytes) {
  Open();
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  for (int i = 0; i < 200; ++i) {
    RawPeer peer(door_->port());
    // Half of them begin like a frame, so that they get beyond the first look.
    std::string bytes = i % 2 == 0 ? ""s : "\0\0\1\0\x80\1\0\1"s;
    const uint64_t size = entropy.Below(5000);
    while (bytes.size() < size) bytes.push_back(static_cast<char>(entropy.Next()));
    peer.Send(bytes);
    peer.FinishSending();
    EXPECT_TRUE(peer.SeesClose()) << "peer " << i;
  }
  EXPECT_TRUE(Eventually(kPatience, [&] { return door_->totals().open() == 0; }));
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, KnowsWhenItsPortIsTaken) {
  Open();
  for (const int io_threads : {1, 2}) {
    FrontDoorOptions options{.port = door_->port(), .io_threads = io_threads};
    FrontDoor second(options, SystemClock(), [this] { return MakeProtocols(); });
    const Status status = second.Start();
    EXPECT_EQ(status.code(), Code::kUnavailable) << status;
  }
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, RefusesAnAddressThatIsNone) {
  FrontDoor door({.host = "localhost"}, SystemClock(), [this] { return MakeProtocols(); });
  EXPECT_EQ(door.Start().code(), Code::kInvalid);
}

TEST_F(FrontDoorTest, SharesItsConnectionsAmongThreads) {
  Open({.io_threads = 3});
  std::vector<std::unique_ptr<RawPeer>> peers;
  for (int i = 0; i < 30; ++i) {
    peers.push_back(std::make_unique<RawPeer>(door_->port()));
    EXPECT_EQ(IdFor(*peers.back()), i + 1);
  }
  EXPECT_EQ(door_->totals().open(), 30u);
}

TEST_F(FrontDoorTest, ShutsDownAfterItHasAnsweredWhatItOwes) {
  issuing_.limits.issue_wait_ms = 60'000;
  Open({.io_threads = 2});
  issuing_.slow->waits = true;
  RawPeer waiting(door_->port()), idle(door_->port());
  ThriftCalls calls;
  ASSERT_TRUE(waiting.Send(calls.GetId("slow")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return issuing_.slow->asked > 0; }));
  std::thread shutdown([&] { door_->Shutdown(Milliseconds(60'000)); });
  EXPECT_TRUE(idle.SeesClose());
  issuing_.slow->waits = false;
  EXPECT_EQ(calls.Answer(ReceiveFrame(waiting)).recv_getId(), 1);
  EXPECT_TRUE(waiting.SeesClose());
  shutdown.join();
  EXPECT_FALSE(RawPeer(door_->port()).connected());
  EXPECT_EQ(door_->totals().open(), 0u);
}

TEST_F(FrontDoorTest, EndsWhoeverOutlastsItsPatience) {
  issuing_.limits.issue_wait_ms = 60'000;
  Open();
  issuing_.slow->waits = true;
  RawPeer waiting(door_->port());
  ASSERT_TRUE(waiting.Send(ThriftCalls().GetId("slow")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return issuing_.slow->asked > 0; }));
  door_->Shutdown(Milliseconds(100));
  EXPECT_TRUE(waiting.SeesClose());
  EXPECT_EQ(door_->totals().closed_by(CloseCause::kShutdown), 1u);
}

}  // namespace
}  // namespace firn::front
