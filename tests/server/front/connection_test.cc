#include "server/front/connection.h"

#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace firn::front {
namespace {

// Requests are lines. "x" closes, "wait" parks, "twice" is answered with two lines; everything
// else is answered by itself in upper case.
class LineProtocol final : public Protocol {
 public:
  ServeStep Serve(std::string_view in, Attempt attempt, OutBuffer& out) override {
    const size_t end = in.find('\n');
    if (in.substr(0, end).starts_with("HOW") && end == std::string_view::npos) {
      return ServeStep::NeedMoreOfOneWhoWaits(0);
    }
    if (end == std::string_view::npos) return ServeStep::NeedMore();
    client = attempt.client;
    const std::string_view line = in.substr(0, end);
    if (line.ends_with("X")) return ServeStep::Close(CloseCause::kBadHttp);
    if (line.ends_with("WAIT") && waits) {
      ++attempts;
      if (!attempt.last) return ServeStep::Park(500);
      out.Append("LATE\n");
      return ServeStep::Served(end + 1);
    }
    for (int i = 0; i < answer_times; ++i) out.Append(in.substr(0, end + 1));
    return ServeStep::Served(end + 1);
  }

  std::string_view go_on() const override { return "GO ON\n"; }

  bool waits = true;
  std::string client;  // who asked last
  int attempts = 0;
  int answer_times = 1;
};

// A wire whose other end is the test.
class FakeWire final : public Wire {
 public:
  void Bind(WireUser& bound) override { user = &bound; }
  void Read(char* into, size_t size) override {
    ASSERT_FALSE(reading);
    reading = true;
    into_ = into;
    size_ = size;
  }
  size_t WriteNow(std::string_view bytes) override {
    const size_t n = std::min(takes, bytes.size());
    takes -= n;
    sent.append(bytes.substr(0, n));
    ++writes;
    return n;
  }
  void Write(std::string_view bytes) override {
    ASSERT_FALSE(writing);
    writing = true;
    waiting_ = bytes;
  }
  void FinishSending() override { finished = true; }
  void Close() override { closed = true; }

  void Arrives(std::string_view bytes) {
    ASSERT_TRUE(reading);
    ASSERT_LE(bytes.size(), size_);
    bytes.copy(into_, bytes.size());
    reading = false;
    user->OnRead(bytes.size());
  }
  void PeerCloses() {
    ASSERT_TRUE(reading);
    reading = false;
    user->OnReadFailed(true);
  }
  // The peer reads `n` of the bytes that wait.
  void Reads(size_t n) {
    ASSERT_TRUE(writing);
    writing = false;
    n = std::min(n, waiting_.size());
    sent.append(waiting_.substr(0, n));
    user->OnWritten(n);
  }

  WireUser* user = nullptr;
  size_t takes = 1'000'000'000;  // bytes that are sent without waiting
  std::string sent;
  int writes = 0;
  bool reading = false, writing = false, finished = false, closed = false;

 private:
  char* into_ = nullptr;
  size_t size_ = 0;
  std::string_view waiting_;
};

class ConnectionTest : public testing::Test, protected ConnectionHost {
 protected:
  ConnectionTest() {
    auto protocol = std::make_unique<LineProtocol>();
    lines_ = protocol.get();
    protocols_.http = std::move(protocol);
    limits_.requests_per_turn_max = 3;
    limits_.output_waiting_bytes_max = 100;
  }

  void Open() {
    auto wire = std::make_unique<FakeWire>();
    wire_ = wire.get();
    ConnectionHost& host = *this;
    connection_ =
        std::make_unique<Connection>(host, limits_, protocols_, std::move(wire), "10.0.0.9:4711");
    connection_->Start();
  }
  void Say(std::string_view bytes) {
    wire_->Arrives(bytes);
    EndTurn();
  }
  void EndTurn() {
    while (connection_ && (to_read_ || to_resume_)) {
      if (std::exchange(to_read_, false)) connection_->ReadMore();
      if (connection_ && std::exchange(to_resume_, false)) connection_->Resume();
    }
  }
  void TimePasses(int64_t ms) {
    now_ms_ += ms;
    connection_->CheckDeadlines();
  }
  void TryParkedAgain() {
    ASSERT_TRUE(std::exchange(parked_, false));
    connection_->Resume();
    EndTurn();
  }
  uint64_t Closed(CloseCause cause) { return counters_.closed_by(cause).Get(); }

  void ReadLater(Connection&) override { to_read_ = true; }
  void ResumeLater(Connection&) override {
    to_resume_ = true;
    ++turns_;
  }
  void Park(Connection&, int64_t) override { parked_ = true; }
  void Remove(Connection&) override { connection_.reset(); }
  int64_t coarse_ms() const override { return now_ms_; }
  int64_t exact_ms() const override { return now_ms_; }
  int64_t exact_us() const override { return now_ms_ * 1'000; }
  OutBuffer& output() override { return output_; }
  LoopCounters& counters() override { return counters_; }

  Limits limits_;
  ProtocolSet protocols_;
  LineProtocol* lines_;
  FakeWire* wire_ = nullptr;
  LoopCounters counters_;
  OutBuffer output_;
  int64_t now_ms_ = 1'000'000;
  bool to_read_ = false, to_resume_ = false, parked_ = false;
  int turns_ = 0;
  std::unique_ptr<Connection> connection_;
};

TEST_F(ConnectionTest, AnswersAllThatHasArrivedInOneWrite) {
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
  now_ms_ += 3;
  TryParkedAgain();
  LatencyCounts::Sums sums;
  counters_.http_latency.AddTo(sums);
  EXPECT_EQ(sums.buckets[0], 2u);
  EXPECT_EQ(sums.buckets[12], 1u) << "3 ms are less than 2^12 us";
  EXPECT_EQ(sums.total_us, 3'000u);
}

TEST_F(ConnectionTest, TellsAPeerThatWaitsOnceToGoOn) {
  Open();
  Say("HOW");
  EXPECT_EQ(wire_->sent, "GO ON\n");
  Say("HOW");
  EXPECT_EQ(wire_->sent, "GO ON\n");
  Say("\nHOW");
  EXPECT_EQ(wire_->sent, "GO ON\nHOWHOW\nGO ON\n") << "once for each request";
}

TEST_F(ConnectionTest, SaysWhoAsks) {
  Open();
  Say("A\n");
  EXPECT_EQ(lines_->client, "10.0.0.9:4711");
}

TEST_F(ConnectionTest, LetsOthersHaveTheirTurn) {
  Open();
  Say("A\nB\nC\nD\nE\n");
  EXPECT_EQ(turns_, 1);
  EXPECT_EQ(wire_->writes, 2);
  EXPECT_EQ(wire_->sent, "A\nB\nC\nD\nE\n");
}

TEST_F(ConnectionTest, ParksARequestAndThoseBehindItAndKeepsTheOrder) {
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
  EXPECT_EQ(counters_.parked.Get(), 1u);
}

TEST_F(ConnectionTest, GivesAParkedRequestItsLastAttemptWhenItHasWaitedLongEnough) {
  Open();
  Say("WAIT\nWAIT\n");
  now_ms_ += limits_.issue_wait_ms - 1;
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "");
  now_ms_ += 1;
  TryParkedAgain();
  EXPECT_EQ(wire_->sent, "LATE\n") << "the second one has its own patience";
  now_ms_ += limits_.issue_wait_ms;
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
  EXPECT_EQ(counters_.output_paused.Get(), 1u);
  wire_->Reads(1'000'000);
  EndTurn();
  wire_->Reads(1'000'000);
  EndTurn();
  wire_->Reads(1'000'000);
  EndTurn();
  EXPECT_EQ(wire_->sent.size(), 3u * 400);
  EXPECT_TRUE(wire_->reading);
}

TEST_F(ConnectionTest, EndsAPeerThatDoesNotReadItsAnswers) {
  Open();
  wire_->takes = 1;
  Say("A\nB\n");
  TimePasses(limits_.half_request_ms - 1);
  EXPECT_FALSE(wire_->closed);
  wire_->Reads(1);
  TimePasses(limits_.half_request_ms - 1);
  EXPECT_FALSE(wire_->closed) << "some of it was read";
  TimePasses(1);
  EXPECT_TRUE(wire_->closed);
  EXPECT_EQ(Closed(CloseCause::kUnread), 1u);
}

TEST_F(ConnectionTest, EndsAHalfRequest) {
  Open();
  TimePasses(limits_.half_request_ms);
  Say("A");
  TimePasses(limits_.half_request_ms - 1);
  Say("B");
  EXPECT_FALSE(wire_->closed);
  TimePasses(1);
  EXPECT_EQ(Closed(CloseCause::kHalfRequest), 1u);
}

TEST_F(ConnectionTest, EndsAnIdleConnection) {
  Open();
  Say("A\n");
  TimePasses(limits_.idle_ms - 1);
  Say("B\n");
  TimePasses(limits_.idle_ms - 1);
  EXPECT_FALSE(wire_->closed);
  TimePasses(1);
  EXPECT_EQ(Closed(CloseCause::kIdle), 1u);
}

TEST_F(ConnectionTest, SendsWhatItOwesBeforeItCloses) {
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

TEST_F(ConnectionTest, DoesNotWaitForThePeerToCloseForLong) {
  Open();
  Say("X\n");
  EXPECT_TRUE(wire_->finished);
  TimePasses(999);
  EXPECT_FALSE(wire_->closed);
  TimePasses(1);
  EXPECT_TRUE(wire_->closed);
}

TEST_F(ConnectionTest, AnswersAPeerThatHasShutItsSide) {
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

TEST_F(ConnectionTest, RefusesAProtocolThatItDoesNotSpeak) {
  Open();
  Say("hello\n");
  EXPECT_TRUE(wire_->finished);
  wire_->PeerCloses();
  EXPECT_EQ(Closed(CloseCause::kUnknownProtocol), 1u);
}

TEST_F(ConnectionTest, IsRemovedOnlyWhenTheWireHasAnsweredEverything) {
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

TEST_F(ConnectionTest, ClosesWhenIdleOnceNothingIsOwed) {
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
