#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <gtest/gtest.h>

#include "server/front/net/connection.h"
#include "tests/support/virtual_clock.h"

namespace firn::front {

// A protocol whose requests are lines. "x" closes, "wait" parks, and "twice" is answered with two
// lines; every other line is answered in upper case.
class LineProtocol final : public Protocol {
 public:
  struct Lines final : DoorSession {
    int count = 0;
  };

  ServeStep Serve(std::string_view in, DoorCall& call, OutBuffer& out) override {
    const size_t end = in.find('\n');
    if (in.substr(0, end).starts_with("HOW") && end == std::string_view::npos) {
      return ServeStep::NeedMoreAfterContinue(0);
    }
    if (end == std::string_view::npos) {
      ++looks;
      return ServeStep::NeedMore(whole);
    }
    client = call.client;
    if (!call.session) call.session = std::make_unique<Lines>();
    of_session = ++static_cast<Lines&>(*call.session).count;
    const std::string_view line = in.substr(0, end);
    if (line.ends_with("X")) return ServeStep::Close(CloseCause::kBadHttp);
    ServeStep step = Answer(std::string(in.substr(0, end + 1)), call, out);
    step.bytes = end + 1;
    return step;
  }

  ServeStep Answer(const std::string& line, DoorCall& call, OutBuffer& out) {
    if (on_serve) on_serve();
    patience = call.patience;
    if (line.ends_with("WAIT\n") && waits) {
      ++attempts;
      if (!call.last) {
        return ServeStep::Park(std::chrono::microseconds(500),
                               ParkedAs([this, line](DoorCall& same, OutBuffer& to) {
                                 return Answer(line, same, to);
                               }));
      }
      out.Append("LATE\n");
      return ServeStep::Served(0);
    }
    for (int i = 0; i < answer_times; ++i) out.Append(line);
    return ServeStep::Served(0);
  }

  bool MayBeWhole(std::string_view in, PartialRead&) const override {
    return !asks || in.ends_with("\n");
  }
  CloseCause TooLong(OutBuffer& out) override {
    out.Append("TOO LONG\n");
    return CloseCause::kHttpTooLarge;
  }

  std::string_view go_on() const override { return "GO ON\n"; }

  bool waits = true;
  bool asks = false;   // MayBeWhole checks the last byte
  size_t whole = 0;    // length that it reports for an incomplete line
  int looks = 0;       // parses of incomplete lines
  std::string client;  // of the last request
  int of_session = 0;  // the number of the last request on its connection
  int attempts = 0;
  int answer_times = 1;
  std::chrono::milliseconds patience{};  // of the last attempt
  std::function<void()> on_serve{};
};

// A wire whose peer is the test. Like a real wire, it owns the buffers of reads and writes in
// progress.
class FakeWire final : public Wire {
 public:
  void Bind(Connection& bound) override { user = &bound; }
  void Read(InBuffer&& input) override {
    ASSERT_FALSE(reading);
    reading = true;
    input_ = std::move(input);
  }
  size_t WriteNow(std::string_view bytes) override {
    const size_t n = std::min(takes, bytes.size());
    takes -= n;
    sent.append(bytes.substr(0, n));
    ++writes;
    return n;
  }
  void Write(OutBuffer& bytes) override {
    ASSERT_FALSE(writing);
    ASSERT_FALSE(bytes.empty());
    writing = true;
    std::swap(output_, bytes);
    bytes_at = output_.view().data();
  }
  void FinishSending() override { finished = true; }
  void Close() override { closed = true; }

  void Arrives(std::string_view bytes) {
    ASSERT_TRUE(reading);
    ASSERT_LE(bytes.size(), input_.room().size());
    bytes.copy(input_.room().data(), bytes.size());
    input_.Filled(bytes.size());
    reading = false;
    user->OnRead(bytes.size(), std::move(input_));
  }
  size_t room() { return input_.room().size(); }
  void PeerCloses() {
    ASSERT_TRUE(reading);
    reading = false;
    user->OnReadFailed(true);
  }
  // The peer reads `n` of the bytes that wait.
  void Reads(size_t n) {
    ASSERT_TRUE(writing);
    n = std::min(n, output_.size());
    sent.append(output_.view().substr(0, n));
    output_.Consume(n);
    writing = !output_.empty();
    user->OnWritten(n);
  }

  size_t memory() const override { return input_.memory() + output_.memory(); }
  void Relax() override { ++relaxed; }

  Connection* user = nullptr;
  int relaxed = 0;
  size_t takes = 1'000'000'000;  // bytes that it accepts without waiting
  std::string sent;
  int writes = 0;
  bool reading = false, writing = false, finished = false, closed = false;
  const void* bytes_at = nullptr;  // buffer of the last write

 private:
  InBuffer input_;
  OutBuffer output_;
};

// A connection whose turns the test runs.
class OneConnection : protected ConnectionHost {
 protected:
  ~OneConnection() = default;

  void Open(IoShare& io) {
    auto wire = std::make_unique<FakeWire>();
    wire_ = wire.get();
    ConnectionHost& host = *this;
    connection_ = std::make_unique<Connection>(host, io, std::move(wire), "10.0.0.9:4711");
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
  void TryParkedAgain() {
    ASSERT_TRUE(std::exchange(parked_, false));
    connection_->Resume();
    EndTurn();
  }
  // Ends the turn, and returns what was sent since the last call.
  std::string Sent() {
    EndTurn();
    return std::exchange(wire_->sent, {});
  }

  void ReadLater(Connection&) override { to_read_ = true; }
  void ResumeLater(Connection&) override {
    to_resume_ = true;
    ++turns_;
  }
  void Park(Connection&, int64_t) override { parked_ = true; }
  void Remove(Connection&) override { connection_.reset(); }

  FakeWire* wire_ = nullptr;
  bool to_read_ = false, to_resume_ = false, parked_ = false;
  int turns_ = 0;
  std::unique_ptr<Connection> connection_;
};

class ConnectionTest : public testing::Test, protected OneConnection {
 protected:
  ConnectionTest() {
    limits_.requests_per_turn_max = 3;
    limits_.output_waiting_bytes_max = 100;
  }

  void Open() { OneConnection::Open(io_); }
  void Pass(int64_t ms) {
    clock_.Advance(Milliseconds(ms));
    io_.coarse_ms = io_.exact_ms();
  }
  void TimePasses(int64_t ms) {
    Pass(ms);
    connection_->CheckDeadlines();
  }
  uint64_t Closed(CloseCause cause) { return io_.counters.closed_by(cause).Get(); }

  static ProtocolSet Only(std::unique_ptr<Protocol> http) {
    ProtocolSet protocols;
    protocols.http = std::move(http);
    return protocols;
  }

  Limits limits_;
  VirtualClock clock_{WallMs(1'735'689'600'000)};
  LineProtocol* lines_ = new LineProtocol;
  IoShare io_{limits_, clock_, Only(std::unique_ptr<Protocol>(lines_))};
};

}  // namespace firn::front
