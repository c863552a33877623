#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <thrift/TApplicationException.h>
#include <thrift/protocol/TBinaryProtocol.h>
#include <thrift/transport/TSocket.h>

#include "server/front/net/unknown_peer.h"
#include "tests/server/front/front_door_rig.h"
#include "tests/support/seed.h"

namespace firn::front {
namespace {

using std::string_literals::operator""s;

TEST_F(FrontDoorTest, ServesBothCodingsOnOnePort) {
  Open();
  Peer binary(door_->port()), compact(door_->port());
  EXPECT_EQ(IdFor(binary), Number(1));
  EXPECT_EQ(IdFor(compact, ThriftCoding::kCompact), Number(2));
  EXPECT_EQ(IdFor(binary), Number(3));
  EXPECT_EQ(door_->totals().requests, static_cast<uint64_t>(Number(3)));
  EXPECT_EQ(door_->totals().open(), 2u);
}

TEST_F(FrontDoorTest, AnswersManyRequestsInTheirOrder) {
  Open();
  Peer peer(door_->port());
  ThriftCalls calls;
  std::string many;
  for (int i = 0; i < 5000; ++i) many += calls.GetId("slow");
  ASSERT_TRUE(peer.Send(many));
  for (int64_t i = 1; i <= 5000; ++i) {
    ASSERT_EQ(calls.Answer(peer.ReceiveFrame()).recv_getId(), Number(i));
  }
}

TEST_F(FrontDoorTest, AnswersRequestsThatArriveByteByByte) {
  Open();
  Peer peer(door_->port());
  ThriftCalls calls;
  for (const char byte : calls.GetId("slow")) ASSERT_TRUE(peer.Send({&byte, 1}));
  EXPECT_EQ(calls.Answer(peer.ReceiveFrame()).recv_getId(), 1);
}

TEST_F(FrontDoorTest, ServesOtherCallsWhileOneWaits) {
  issuing_.limits.issue_wait_ms = 60'000;
  Open();
  issuing_.slow->waits = true;
  Peer waiting(door_->port()), other(door_->port());
  ThriftCalls calls, other_calls;
  ASSERT_TRUE(waiting.Send(calls.GetId("slow")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return issuing_.slow->asked > 3; }));
  ASSERT_TRUE(other.Send(other_calls.GetId("order")));
  EXPECT_GT(other_calls.Answer(other.ReceiveFrame()).recv_getId(), 0);
  issuing_.slow->waits = false;
  EXPECT_EQ(calls.Answer(waiting.ReceiveFrame()).recv_getId(), Number(1));
}

TEST_F(FrontDoorTest, WakesOnlyTheCallsThatWaitForTheTag) {
  issuing_.limits.issue_wait_ms = 60'000;
  const auto away = std::make_shared<ScriptedStrategy>();
  ASSERT_TRUE(issuing_.issuer.Set({"away", away, {}}).ok());
  away->waits = issuing_.slow->waits = true;
  away->again_us = 1'000'000;  // retried after 5 ms at most
  Open();
  Peer waiting(door_->port());
  ThriftCalls calls;
  ASSERT_TRUE(waiting.Send(calls.GetId("away")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return away->asked > 1; }));
  const auto asked_by_news_of = [&](const char* tag) {
    away->asked = 0;
    for (int i = 0; i < 20'000; ++i) door_->WakeParked(issuing_.issuer.Resolve(tag));
    ExpectGoodClientIsServed("order");  // by then, everything that was posted before has run
    return away->asked.load();
  };
  const int of_another = asked_by_news_of("slow");
  const int of_its_own = asked_by_news_of("away");
  EXPECT_GE(of_its_own, 20'000);
  EXPECT_LT(of_another, 10'000) << "only at times, by its own timer";
}

TEST_F(FrontDoorTest, RefusesACallThatHasWaitedTooLong) {
  issuing_.limits.issue_wait_ms = 20;
  Open();
  issuing_.slow->waits = true;
  Peer peer(door_->port());
  EXPECT_THROW(IdFor(peer), wire::Refusal);
  issuing_.slow->waits = false;
  EXPECT_EQ(IdFor(peer), Number(1));
}

TEST_F(FrontDoorTest, ClosesOnAFrameBeyondTheLimit) {
  Open();
  Peer peer(door_->port());
  ASSERT_TRUE(peer.Send("\0\1\0\1\x80\1\0\1"s));
  EXPECT_TRUE(peer.SeesClose());
  EXPECT_TRUE(Closes(CloseCause::kFrameTooLarge));
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, ClosesOnAnUnknownProtocol) {
  Open();
  for (const auto& hello : {"\x16\3\1\0\xa5\1\0\0"s, "*1\r\n$4\r\nPING\r\n"s, "\x80\1\0\1"s}) {
    Peer peer(door_->port());
    ASSERT_TRUE(peer.Send(hello));
    EXPECT_TRUE(peer.SeesClose());
  }
  EXPECT_TRUE(Closes(CloseCause::kUnknownProtocol, 3));
}

TEST_F(FrontDoorTest, AsksUnframedThriftToUseFrames) {
  Open();
  using apache::thrift::transport::TSocket;
  const auto socket = std::make_shared<TSocket>("127.0.0.1", door_->port());
  socket->open();
  wire::IdServiceClient client(std::make_shared<apache::thrift::protocol::TBinaryProtocol>(socket));
  try {
    client.getId("order");
    FAIL() << "an id without frames";
  } catch (const apache::thrift::TApplicationException& told) {
    EXPECT_NE(std::string(told.what()).find("TFramedTransport"), std::string::npos) << told.what();
  }
  EXPECT_TRUE(Closes(CloseCause::kUnknownProtocol));
}

TEST_F(FrontDoorTest, LogsAnUnsupportedProtocolAtALimitedRate) {
  std::mutex mutex;
  std::vector<std::string> lines;
  FrontDoorOptions options;
  options.log = [&](const std::string& line) {
    const std::lock_guard lock(mutex);
    lines.push_back(line);
  };
  Open(options);
  for (int i = 0; i < 20; ++i) {
    Peer peer(door_->port());
    ASSERT_TRUE(peer.Send("*1\r\n$4\r\nPING\r\n"));
    EXPECT_TRUE(peer.SeesClose());
  }
  EXPECT_TRUE(Closes(CloseCause::kUnknownProtocol, 20));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_TRUE(lines[0].starts_with("127.0.0.1:")) << lines[0];
  EXPECT_NE(lines[0].find(" speaks Redis, which is not served on this port: "), std::string::npos)
      << lines[0];
}

TEST(Stranger, IsRecognisedByItsFirstBytes) {
  EXPECT_EQ(DescribeUnknownPeer("\x16\3\1\0\xa5"s), "TLS, which this port does not use");
  EXPECT_EQ(DescribeUnknownPeer("\x80\1\0\1"s), "binary Thrift without frames");
  EXPECT_EQ(DescribeUnknownPeer("\x82\x21\0"s), "compact Thrift without frames");
  EXPECT_EQ(DescribeUnknownPeer("\0\0\0\5getId"s), "Thrift's old binary form, without a version");
  EXPECT_EQ(DescribeUnknownPeer("*1\r\n"), "Redis, which is not served on this port");
  EXPECT_EQ(DescribeUnknownPeer("\xda\xbb"), "Dubbo, which is not served on this port");
  EXPECT_EQ(DescribeUnknownPeer("hello"), "an unknown protocol");
  OutBuffer out;
  for (const auto& first : {"hello"s, "\x16\3\1"s, "\xda\xbb"s, ""s}) RefuseUnknownPeer(first, out);
  EXPECT_TRUE(out.empty());
  RefuseUnknownPeer("*1\r\n", out);
  EXPECT_EQ(out.view(), "-ERR Redis is not served on this port\r\n");
  out.Clear();
  // Truncated within the name, or with too long a name.
  for (const auto& first : {"\x80\1"s, "\x80\1\0\1\0\0\0\5get"s, "\x80\1\0\1\xff\xff\xff\xff"s}) {
    RefuseUnknownPeer(first, out);
    EXPECT_FALSE(out.empty());
    out.Clear();
  }
}

TEST_F(FrontDoorTest, SurvivesRandomBytes) {
  Open();
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  for (int i = 0; i < 200; ++i) {
    Peer peer(door_->port());
    // Half of them begin like a frame, so that they pass the first check.
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

TEST_F(FrontDoorTest, FailsIfItsPortIsTaken) {
  Open();
  for (const int io_threads : {1, 2}) {
    FrontDoorOptions options{.port = door_->port(), .io_threads = io_threads};
    FrontDoor second(options, SystemClock(), [this] { return MakeProtocols(); });
    const Status status = second.Start();
    EXPECT_EQ(status.code(), Code::kUnavailable) << status;
  }
  ExpectGoodClientIsServed();
}

TEST_F(FrontDoorTest, RefusesAnInvalidAddress) {
  FrontDoor door({.host = "localhost"}, SystemClock(), [this] { return MakeProtocols(); });
  EXPECT_EQ(door.Start().code(), Code::kInvalid);
}

TEST_F(FrontDoorTest, SpreadsConnectionsOverThreads) {
  Open({.io_threads = 3});
  std::vector<std::unique_ptr<Peer>> peers;
  for (int i = 0; i < 30; ++i) {
    peers.push_back(std::make_unique<Peer>(door_->port()));
    EXPECT_EQ(IdFor(*peers.back()), Number(i + 1));
  }
  EXPECT_EQ(door_->totals().open(), 30u);
}

TEST_F(FrontDoorTest, ShutsDownAfterPendingAnswers) {
  issuing_.limits.issue_wait_ms = 60'000;
  Open({.io_threads = 2});
  issuing_.slow->waits = true;
  Peer waiting(door_->port()), idle(door_->port());
  ThriftCalls calls;
  ASSERT_TRUE(waiting.Send(calls.GetId("slow")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return issuing_.slow->asked > 0; }));
  std::thread shutdown([&] { door_->Shutdown(Milliseconds(60'000)); });
  EXPECT_TRUE(idle.SeesClose());
  issuing_.slow->waits = false;
  EXPECT_EQ(calls.Answer(waiting.ReceiveFrame()).recv_getId(), Number(1));
  EXPECT_TRUE(waiting.SeesClose());
  shutdown.join();
  EXPECT_FALSE(Peer(door_->port()).connected());
  EXPECT_EQ(door_->totals().open(), 0u);
}

TEST_F(FrontDoorTest, ClosesConnectionsThatOutlastTheShutdown) {
  issuing_.limits.issue_wait_ms = 60'000;
  Open();
  issuing_.slow->waits = true;
  Peer waiting(door_->port());
  ASSERT_TRUE(waiting.Send(ThriftCalls().GetId("slow")));
  ASSERT_TRUE(Eventually(kPatience, [&] { return issuing_.slow->asked > 0; }));
  door_->Shutdown(Milliseconds(100));
  EXPECT_TRUE(waiting.SeesClose());
  EXPECT_EQ(door_->totals().closed_by(CloseCause::kShutdown), 1u);
}

}  // namespace
}  // namespace firn::front
