#include "server/front/net/connection.h"

#include <new>
#include <set>

#include "tests/server/front/connection_rig.h"

namespace firn::front {
namespace {

TEST_F(ConnectionTest, AnswersAllArrivedRequestsInOneWrite) {
  Open();
  Say("A\nB\nC");
  EXPECT_EQ(wire_->sent, "A\nB\n");
  EXPECT_EQ(wire_->writes, 1);
  Say("C\n");
  EXPECT_EQ(wire_->sent, "A\nB\nCC\n");
}

TEST_F(ConnectionTest, CountsHowLongEachRequestTook) {
  Open();
  Say("A\nB\n");
  Say("WAIT\n");
  lines_->waits = false;
  Pass(3);
  TryParkedAgain();
  LatencyCounts::Sums sums;
  io_.counters.latency[ProtocolKind::kHttp].AddTo(sums);
  EXPECT_EQ(sums.buckets[0], 2u);
  EXPECT_EQ(sums.buckets[12], 1u) << "3 ms are less than 2^12 us";
  EXPECT_EQ(sums.total_us, 3'000u);
}

TEST_F(ConnectionTest, SendsContinueOnceToAPeerThatWaits) {
  Open();
  Say("HOW");
  EXPECT_EQ(wire_->sent, "GO ON\n");
  Say("HOW");
  EXPECT_EQ(wire_->sent, "GO ON\n");
  Say("\nHOW");
  EXPECT_EQ(wire_->sent, "GO ON\nHOWHOW\nGO ON\n") << "once per request";
}

TEST_F(ConnectionTest, PassesTheClientsName) {
  Open();
  Say("A\n");
  EXPECT_EQ(lines_->client, "10.0.0.9:4711");
}

TEST_F(ConnectionTest, YieldsAfterManyRequests) {
  Open();
  Say("A\nB\nC\nD\nE\n");
  EXPECT_EQ(turns_, 1);
  EXPECT_EQ(wire_->writes, 2);
  EXPECT_EQ(wire_->sent, "A\nB\nC\nD\nE\n");
}

TEST_F(ConnectionTest, YieldsWhenRequestsTakeLong) {
  limits_.requests_per_turn_max = 1000;
  limits_.output_waiting_bytes_max = 100'000;
  lines_->on_serve = [this] { clock_.Advance(Milliseconds(1)); };
  Open();
  std::string many;
  for (int i = 0; i < 100; ++i) many += "A\n";
  Say(many);
  EXPECT_EQ(wire_->sent.size(), many.size());
  EXPECT_EQ(turns_, 3) << "the clock is read after every 32 requests";
}

TEST_F(ConnectionTest, YieldsWhenAnswersAreLong) {
  limits_.requests_per_turn_max = 1000;
  limits_.output_waiting_bytes_max = 10'000'000;
  lines_->on_serve = [this] { clock_.Advance(Milliseconds(1)); };
  lines_->answer_times = 4'096;
  Open();
  Say("A\nB\nC\nD\nE\nF\nG\nH\nI\n");  // each answer has 8 KiB: the clock is read after every two
  EXPECT_EQ(wire_->sent.size(), 9u * 8'192);
  EXPECT_EQ(turns_, 4);
}

TEST_F(ConnectionTest, YieldsAfter64KibOfAnswers) {
  limits_.requests_per_turn_max = 1000;
  limits_.output_waiting_bytes_max = 10'000'000;
  lines_->answer_times = 16'384;  // 32 KiB each
  Open();
  Say("A\nB\nC\nD\nE\n");
  EXPECT_EQ(wire_->sent.size(), 5u * 32'768);
  EXPECT_EQ(turns_, 2);
}

TEST_F(ConnectionTest, YieldsWhenRequestsAreLong) {
  limits_.requests_per_turn_max = 1000;
  limits_.output_waiting_bytes_max = 10'000'000;
  lines_->on_serve = [this] { clock_.Advance(Milliseconds(1)); };
  lines_->answer_times = 0;
  Open();
  const std::string line(16'384, 'A');
  Say(line.substr(0, 4'096));  // the input buffer grows with each read that fills it
  Say(line.substr(4'096));
  Say("\n" + line + "\n" + line + "\n");
  EXPECT_EQ(turns_, 1) << "the clock is read after each request";
}

TEST_F(ConnectionTest, AFailedAllocationEndsOnlyItsConnection) {
  lines_->on_serve = [] { throw std::bad_alloc(); };
  Open();
  Say("A\n");
  EXPECT_EQ(Closed(CloseCause::kNoMemory), 1u);
  EXPECT_FALSE(connection_);
  lines_->on_serve = {};
  Open();
  Say("B\n");
  EXPECT_EQ(wire_->sent, "B\n") << "the failed connection's answer must not appear";
  lines_->on_serve = [this] {
    if (lines_->attempts == 1) throw std::bad_alloc();
  };
  Say("WAIT\n");
  TryParkedAgain();
  EXPECT_EQ(Closed(CloseCause::kNoMemory), 2u);
}

TEST_F(ConnectionTest, ReleasesGrownBuffersAfterASecond) {
  Open();
  Say("A\n");
  TimePasses(999);
  EXPECT_EQ(wire_->relaxed, 0);
  TimePasses(1);
  EXPECT_EQ(wire_->relaxed, 1);
  wire_->takes = 0;
  Say("B\n");
  TimePasses(5'000);
  EXPECT_EQ(wire_->relaxed, 1) << "not while an answer is pending";
}

TEST_F(ConnectionTest, ParksARequestAndLaterOnesAndKeepsTheOrder) {
  Open();
  Say("A\nWAIT\nB\n");
  EXPECT_EQ(wire_->sent, "A\n");
  EXPECT_FALSE(wire_->reading);
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "A\n");
  lines_->waits = false;
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "A\nWAIT\nB\n");
  EXPECT_TRUE(wire_->reading);
  EXPECT_EQ(io_.counters.parked.Get(), 1u);
}

TEST_F(ConnectionTest, DoesNotParseAParkedRequestAgain) {
  Open();
  Say("WAIT\nB\n");
  for (int i = 0; i < 3; ++i) TryParkedAgain();
  EXPECT_EQ(lines_->attempts, 4);
  EXPECT_EQ(lines_->of_session, 1) << "requests that were parsed";
}

TEST_F(ConnectionTest, DrainsAfterAParkedRequestWasAnswered) {
  Open();
  Say("WAIT\n");
  connection_->CloseWhenIdle();
  EXPECT_FALSE(wire_->finished) << "an answer is owed";
  lines_->waits = false;
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "WAIT\n");
  EXPECT_TRUE(wire_->finished);
}

TEST_F(ConnectionTest, MakesTheLastAttemptOfAParkedRequestAtItsTimeout) {
  Open();
  Say("WAIT\nWAIT\n");
  Pass(limits_.issue_wait_ms - 1);
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "");
  Pass(1);
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "LATE\n") << "the second request has its own timeout";
  Pass(limits_.issue_wait_ms);
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "LATE\nLATE\n");
}

TEST_F(ConnectionTest, StopsReadingWhileAnswersAreNotRead) {
  Open();
  wire_->takes = 10;
  lines_->answer_times = 200;
  Say("A\nB\nC\n");
  EXPECT_EQ(wire_->sent.size(), 10u);
  EXPECT_FALSE(wire_->reading);
  EXPECT_EQ(io_.counters.output_paused.Get(), 1u);
  wire_->Reads(1'000'000);
  EndTurn();
  wire_->Reads(1'000'000);
  EndTurn();
  wire_->Reads(1'000'000);
  EndTurn();
  EXPECT_EQ(wire_->sent.size(), 3u * 400);
  EXPECT_TRUE(wire_->reading);
}

TEST_F(ConnectionTest, KeepsBytesInFlightUnchangedWhileItServes) {
  Open();
  limits_.output_waiting_bytes_max = 1'000'000;
  wire_->takes = 0;
  lines_->answer_times = 1'000;
  std::string expected;
  for (const std::string line : {"A\n", "B\n", "C\n", "D\n", "E\n"}) {
    Say(line);
    for (int i = 0; i < lines_->answer_times; ++i) expected += line;
  }
  EXPECT_TRUE(wire_->writing);
  while (wire_->writing) wire_->Reads(1'500);
  EXPECT_TRUE(wire_->sent == expected);
}

TEST_F(ConnectionTest, AlternatesBetweenTwoBuffers) {
  Open();
  limits_.output_waiting_bytes_max = 1'000'000;
  wire_->takes = 0;
  std::set<const void*> used;
  for (int i = 0; i < 20; ++i) {
    Say("A\n");
    Say("B\n");
    while (wire_->writing) {
      used.insert(wire_->bytes_at);
      wire_->Reads(1);
    }
  }
  EXPECT_LE(used.size(), 2u);
}

TEST_F(ConnectionTest, CountsBytesInFlightAsUnsent) {
  Open();
  wire_->takes = 0;
  lines_->answer_times = 40;
  Say("A\n");
  EXPECT_TRUE(wire_->reading) << "80 bytes of 100 wait";
  Say("B\nC\n");
  EXPECT_FALSE(wire_->reading) << "160 of 100";
  wire_->Reads(80);
  EXPECT_EQ(io_.counters.output_paused.Get(), 1u);
  EXPECT_FALSE(wire_->reading);
  EndTurn();
  while (wire_->writing) wire_->Reads(10);
  EndTurn();
  EXPECT_TRUE(wire_->reading);
  EXPECT_EQ(wire_->sent.size(), 240u);
}

TEST_F(ConnectionTest, KeepsTheLengthOfAnIncompleteRequest) {
  Open();
  lines_->whole = 50;
  Say("AAAA");
  connection_->Resume();
  Say(std::string(40, 'A'));
  EXPECT_EQ(lines_->looks, 1);
}

TEST_F(ConnectionTest, DoesNotCloseAsIdleWithAnIncompleteRequest) {
  Open();
  Say("A");
  connection_->CloseWhenIdle();
  EXPECT_FALSE(wire_->finished);
  Say("\n");
  EXPECT_EQ(wire_->sent, "A\n");
  EXPECT_TRUE(wire_->finished);
}

TEST_F(ConnectionTest, ClosesAPeerThatDoesNotReadItsAnswers) {
  limits_.output_waiting_bytes_max = 16;
  Open();
  wire_->takes = 1;
  Say("A\nB\n");
  TimePasses(limits_.half_request_ms - 1);
  EXPECT_FALSE(wire_->closed);
  wire_->Reads(1);
  TimePasses(limits_.half_request_ms - 1);
  EXPECT_FALSE(wire_->closed) << "a part of the output was read";
  TimePasses(1);
  EXPECT_TRUE(wire_->closed);
  EXPECT_EQ(Closed(CloseCause::kUnread), 1u);
}

TEST_F(ConnectionTest, ClosesAPeerThatReadsByteByByte) {
  limits_.output_waiting_bytes_max = 1600;
  Open();
  wire_->takes = 0;
  Say(std::string(1000, 'A') + "\n");
  for (int i = 0; i < 9; ++i) {
    TimePasses(limits_.half_request_ms / 10);
    wire_->Reads(i == 0 ? 100 : 1);
  }
  EXPECT_FALSE(wire_->closed) << "it has read a sixteenth of the output limit, which is enough";
  TimePasses(limits_.half_request_ms / 10);
  EXPECT_FALSE(wire_->closed);
  wire_->Reads(1);
  TimePasses(limits_.half_request_ms / 10);
  EXPECT_TRUE(wire_->closed);
  EXPECT_EQ(Closed(CloseCause::kUnread), 1u);
}

TEST_F(ConnectionTest, ClosesAnIncompleteRequestAtItsTimeout) {
  Open();
  TimePasses(limits_.half_request_ms);
  Say("A");
  TimePasses(limits_.half_request_ms - 1);
  Say("B");
  EXPECT_FALSE(wire_->closed);
  TimePasses(1);
  EXPECT_EQ(Closed(CloseCause::kHalfRequest), 1u);
}

TEST_F(ConnectionTest, ClosesAnIdleConnection) {
  Open();
  Say("A\n");
  TimePasses(limits_.idle_ms - 1);
  Say("B\n");
  TimePasses(limits_.idle_ms - 1);
  EXPECT_FALSE(wire_->closed);
  TimePasses(1);
  EXPECT_EQ(Closed(CloseCause::kIdle), 1u);
}

TEST_F(ConnectionTest, SendsPendingAnswersBeforeItCloses) {
  Open();
  wire_->takes = 1;
  Say("A\nX\n");
  EXPECT_FALSE(wire_->finished);
  wire_->Reads(1);
  EndTurn();
  EXPECT_TRUE(wire_->finished);
  EXPECT_EQ(wire_->sent, "A\n");
  Say("thrown away\n");
  EXPECT_FALSE(wire_->closed);
  wire_->PeerCloses();
  EXPECT_EQ(connection_, nullptr);
  EXPECT_EQ(Closed(CloseCause::kBadHttp), 1u);
}

TEST_F(ConnectionTest, LimitsTheWaitForThePeersClose) {
  Open();
  Say("X\n");
  EXPECT_TRUE(wire_->finished);
  TimePasses(999);
  EXPECT_FALSE(wire_->closed);
  TimePasses(1);
  EXPECT_TRUE(wire_->closed);
}

TEST_F(ConnectionTest, AnswersAPeerThatHasShutDownItsSide) {
  Open();
  wire_->takes = 1;
  Say("A\n");
  wire_->PeerCloses();
  ASSERT_NE(connection_, nullptr);
  wire_->Reads(1);
  EndTurn();
  EXPECT_EQ(wire_->sent, "A\n");
  wire_->PeerCloses();
  EXPECT_EQ(connection_, nullptr);
  EXPECT_EQ(Closed(CloseCause::kPeer), 1u);
}

TEST_F(ConnectionTest, RefusesAnUnsupportedProtocol) {
  Open();
  Say("hello\n");
  EXPECT_TRUE(wire_->finished);
  wire_->PeerCloses();
  EXPECT_EQ(Closed(CloseCause::kUnknownProtocol), 1u);
}

TEST_F(ConnectionTest, IsRemovedOnlyAfterAllCompletionsOfTheWire) {
  Open();
  wire_->takes = 0;
  Say("A\n");
  connection_->Close(CloseCause::kShutdown);
  ASSERT_NE(connection_, nullptr);
  wire_->reading = false;
  wire_->user->OnReadFailed(false);
  ASSERT_NE(connection_, nullptr);
  wire_->user->OnWriteFailed();
  EXPECT_EQ(connection_, nullptr);
  EXPECT_EQ(Closed(CloseCause::kShutdown), 1u);
}

TEST_F(ConnectionTest, ClosesWhenIdleAfterPendingAnswers) {
  Open();
  Say("WAIT\n");
  connection_->CloseWhenIdle();
  EXPECT_FALSE(wire_->finished);
  lines_->waits = false;
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "WAIT\n");
  EXPECT_TRUE(wire_->finished);
}

}  // namespace
}  // namespace firn::front
