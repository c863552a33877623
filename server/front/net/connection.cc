#include "server/front/net/connection.h"

#include <algorithm>
#include <new>
#include <utility>

#include "common/base/cat.h"
#include "server/front/net/unknown_peer.h"

namespace firn::front {
namespace {

// How long the input of a finished connection is discarded before the connection is reset.
constexpr int64_t kLingerMs = 1000;

// Time without a request after which a connection frees its buffers.
constexpr int64_t kRelaxMs = 1000;

// Minimum time between two log lines about unknown peers.
constexpr int64_t kLogEveryMs = 10'000;

// Maximum size of a request: a Thrift frame with its four length bytes, or an HTTP request.
constexpr size_t kRequestBytesMax =
    4 + std::max(kFrameBytesMax, kHttpHeaderBytesMax + 2 * kHttpBodyBytesMax);

// Limit on the bytes parsed for one incomplete request, as a multiple of the maximum request size.
// Parsing again whenever the input has doubled stays below it.
constexpr size_t kParsedInVainMax = 4;

// The clock is read after this many requests, and after this many bytes of requests and answers. A
// request that takes long is long itself, or has a long answer.
constexpr size_t kServedPerCheck = 32;
constexpr size_t kBytesPerCheck = 16 * 1024;

// Limits of one turn: time, and bytes of answers. Sending the answers takes longer than making
// them, and the time limit does not include it.
constexpr int64_t kTurnUsMax = 2'000;
constexpr size_t kAnswersPerTurn = 64 * 1024;

// Maximum number of requests that a protocol serves in one call.
constexpr size_t kServedTogether = 64;

// A peer must read this part of the maximum of unsent output (1/16) in half_request_ms.
constexpr size_t kPartToRead = 16;

}  // namespace

Connection::Connection(ConnectionHost& host, IoShare& io, std::unique_ptr<Wire> wire,
                       std::string peer)
    : host_(host),
      io_(io),
      wire_(std::move(wire)),
      call_{.client = std::move(peer)},
      quiet_since_ms_(io.coarse_ms) {
  wire_->Bind(*this);
}

// If `verb` throws, reading_ and with_wire_ still name the operations in progress.
template <typename Verb>
void Connection::Guarded(Verb verb) {
  try {
    verb();
  } catch (const std::bad_alloc&) {
    io_.output.Clear();
    Close(CloseCause::kNoMemory);
  }
}

void Connection::ReadMore() {
  Guarded([this] { Read(); });
}

void Connection::Read() {
  if (reading_ || phase_ == Phase::kClosed) return;
  if (in_.MakeRoom(front_.whole, kRequestBytesMax).empty()) {
    OutBuffer& out = io_.output;
    const CloseCause cause = protocol_->TooLong(out);
    Send(out);
    return Finish(cause);
  }
  wire_->Read(std::move(in_));
  reading_ = true;
}

void Connection::OnRead(size_t n, InBuffer&& input) {
  reading_ = false;
  in_ = std::move(input);
  io_.counters.bytes_in.Add(n);
  if (phase_ != Phase::kOpen) {
    in_.Clear();
    if (phase_ == Phase::kClosed) return RemoveIfDone();
    return ReadMore();
  }
  if (!parked_) Guarded([this] { Pump(); });
}

void Connection::OnReadFailed(bool peer_closed) {
  reading_ = false;
  // A peer that has shut down only its sending side may still wait for answers.
  if (phase_ == Phase::kOpen && peer_closed && unsent() != 0) return Finish(CloseCause::kPeer);
  Break(peer_closed ? CloseCause::kPeer : CloseCause::kPeerBroke);
}

void Connection::OnWritten(size_t n) {
  Guarded([this, n] { Written(n); });
}

void Connection::Written(size_t n) {
  const bool was_paused = OutputPaused();
  with_wire_ -= n;
  if (phase_ == Phase::kClosed) return RemoveIfDone();
  io_.counters.bytes_out.Add(n);
  if (with_wire_ == 0 && !waiting_.empty()) WriteWaiting();
  moved_since_ += n;
  if (unsent() == 0) unread_since_ms_.reset();
  if (unread_since_ms_ && moved_since_ >= io_.limits.output_waiting_bytes_max / kPartToRead) {
    BeginToWait();
  }
  if (phase_ == Phase::kFinishing && unsent() == 0) return Linger();
  if (phase_ != Phase::kOpen) return;
  if (was_paused && !OutputPaused() && MayServe()) return Pump();
  if (close_when_idle_) CloseWhenIdle();
}

void Connection::OnWriteFailed() {
  with_wire_ = 0;
  Break(CloseCause::kPeerBroke);
}

void Connection::Resume() {
  if (MayServe()) Guarded([this] { Pump(); });
}

void Connection::Pump() {
  OutBuffer& out = io_.output;
  const int64_t begin_us = parked_ ? parked_->since_us : io_.exact_us();
  Turn turn = ServeAll(out, begin_us);
  if (turn.last.peer_waits) SendContinue(out);
  Send(out);
  if (turn.served != 0) io_.counters.latency[kind_].Add(io_.exact_us() - begin_us, turn.served);
  if (phase_ == Phase::kOpen) GoOn(std::move(turn.last));
}

Connection::Turn Connection::ServeAll(OutBuffer& out, int64_t begin_us) {
  Turn turn{.last = ServeStep::NeedMore()};
  size_t look_at = kServedPerCheck;
  size_t bytes = 0;  // since the clock was read last
  while (parked_ || !in_.empty()) {
    turn.last = ServeStep::Served(0);
    if (turn.served == io_.limits.requests_per_turn_max) break;
    if (out.size() >= kAnswersPerTurn) break;
    if (turn.served >= look_at || bytes >= kBytesPerCheck) {
      if (io_.exact_us() - begin_us >= kTurnUsMax) break;
      look_at = turn.served + kServedPerCheck;
      bytes = 0;
    }
    // A waiting request is retried even if the peer reads no answers: it must end at its deadline.
    const bool waits = parked_ && parked_->waits;
    if (!waits && unsent() + out.size() > io_.limits.output_waiting_bytes_max) break;
    call_.together = std::min(kServedTogether, io_.limits.requests_per_turn_max - turn.served);
    const size_t answered = out.size();
    turn.last = ServeOne(out);
    const ServeStep& step = turn.last;
    const bool is_done = step.kind == ServeStep::Kind::kServed;
    if (is_done || step.parked != nullptr) {
      in_.Consume(step.bytes);
      front_ = {};
    }
    // An answer after which the connection closes at the peer's request counts, too.
    if (step.kind == ServeStep::Kind::kClose && step.cause == CloseCause::kPeer) ++turn.served;
    if (!is_done) break;
    bytes += step.bytes + (out.size() - answered);
    turn.served += step.requests;
    turn.last = ServeStep::NeedMore();
  }
  if (turn.served != 0) {
    quiet_since_ms_ = io_.coarse_ms;
    io_.counters.requests.Add(turn.served);
  }
  if (MustLeave(turn)) turn.last = ServeStep::Close(CloseCause::kTooMany);
  return turn;
}

void Connection::SendContinue(OutBuffer& out) {
  if (!std::exchange(front_.told_to_go_on, true)) out.Append(protocol_->go_on());
}

std::optional<ServeStep> Connection::Recognised(OutBuffer& out) {
  const DetectedProtocol speech = Recognise(in_.view());
  if (speech == DetectedProtocol::kUndecided) return ServeStep::NeedMore();
  protocol_ = io_.protocols.For(speech);
  if (protocol_ == nullptr) return TurnAway(out);
  kind_ = KindOf(speech);
  io_.counters.recognised[kind_].Add(1);
  return std::nullopt;
}

// Moves the request here first: it is destroyed at the end unless it is parked again.
ServeStep Connection::RetryParked(OutBuffer& out) {
  const std::unique_ptr<ParkedRequest> request = std::move(parked_->request);
  if (parked_->until_ms) {
    call_.patience = std::chrono::milliseconds(*parked_->until_ms - io_.exact_ms());
    call_.last = call_.patience.count() <= 0;
  }
  ServeStep step = request->Retry(call_, out);
  if (step.parked == nullptr) parked_.reset();
  return step;
}

ServeStep Connection::ServeOne(OutBuffer& out) {
  if (parked_) return RetryParked(out);
  if (protocol_ == nullptr) {
    if (auto other = Recognised(out)) return *std::move(other);
  }
  const std::string_view in = in_.view();
  if (in.size() < front_.whole) return ServeStep::NeedMore(front_.whole);
  const bool guess = front_.whole == 0 && front_.read.parsed != 0 && !front_.may_be_whole;
  if (guess && !protocol_->MayBeWhole(in, front_.read)) return ServeStep::NeedMore();
  front_.may_be_whole = true;
  call_.patience = std::chrono::milliseconds(io_.limits.issue_wait_ms);
  call_.last = call_.hurries = IsInPlaceOfServer();
  ServeStep step = protocol_->Serve(in, call_, out);
  if (step.kind == ServeStep::Kind::kNeedMore) return NotWhole(std::move(step));
  return step;
}

ServeStep Connection::TurnAway(OutBuffer& out) {
  RefuseUnknownPeer(in_.view(), out);
  if (io_.log && io_.coarse_ms >= io_.log_again_ms) {
    io_.log_again_ms = io_.coarse_ms + kLogEveryMs;
    io_.log(Cat(call_.client, " speaks ", DescribeUnknownPeer(in_.view()),
                ": connection closed; similar connections are not logged for ", kLogEveryMs / 1000,
                " s"));
  }
  return ServeStep::Close(CloseCause::kUnknownProtocol);
}

ServeStep Connection::NotWhole(ServeStep step) {
  front_.may_be_whole = false;
  front_.read.parsed = in_.size();
  front_.parsed_in_vain += in_.size();
  const bool too_often = front_.parsed_in_vain > kParsedInVainMax * kRequestBytesMax;
  return too_often ? ServeStep::Close(CloseCause::kHalfRequest) : std::move(step);
}

void Connection::Send(OutBuffer& out) {
  if (out.empty()) return;
  if (with_wire_ == 0) {
    const size_t gone = wire_->WriteNow(out.view());
    io_.counters.bytes_out.Add(gone);
    out.Consume(gone);
  }
  if (out.empty()) return;
  waiting_.Append(out.view());
  out.Clear();
  if (with_wire_ != 0) return;
  BeginToWait();
  WriteWaiting();
}

void Connection::BeginToWait() {
  unread_since_ms_ = io_.coarse_ms;
  moved_since_ = 0;
}

void Connection::WriteWaiting() {
  const size_t bytes = waiting_.size();
  wire_->Write(waiting_);
  with_wire_ = bytes;
}

void Connection::GoOn(ServeStep last) {
  switch (last.kind) {
    case ServeStep::Kind::kClose:
      return Finish(last.cause);
    case ServeStep::Kind::kPark:
      return Park(std::move(last));
    case ServeStep::Kind::kMore:
      Continue(std::move(last));
      return ServeLater();
    case ServeStep::Kind::kServed:
      return ServeLater();
    case ServeStep::Kind::kNeedMore:
      break;
  }
  front_.whole = last.bytes;
  if (in_.empty() && close_when_idle_) return Finish(CloseCause::kShutdown);
  if (!in_.empty() && !front_.since_ms) front_.since_ms = io_.coarse_ms;
  if (!reading_) host_.ReadLater(*this);
}

void Connection::ServeLater() {
  if (OutputPaused()) return io_.counters.output_paused.Add(1);
  io_.counters.yielded.Add(1);
  host_.ResumeLater(*this);
}

void Connection::Continue(ServeStep step) {
  if (!parked_) parked_ = {.since_us = io_.exact_us()};
  parked_->waits = step.kind == ServeStep::Kind::kPark;
  parked_->waits_for = step.waits_for;
  parked_->request = std::move(step.parked);
}

void Connection::Park(ServeStep step) {
  const int64_t most_ms = std::max(step.patience_ms, io_.limits.issue_wait_ms);
  const int64_t again_us = step.again_us;
  if (parked_ && step.is_next) parked_->until_ms.reset();
  Continue(std::move(step));
  if (!parked_->until_ms) {
    parked_->until_ms = io_.exact_ms() + most_ms;
    io_.counters.parked.Add(1);
  }
  host_.Park(*this, again_us);
}

std::optional<int64_t> Connection::half_since_ms() const {
  if (phase_ != Phase::kOpen || parked_) return std::nullopt;
  return wire_->Opening() ? quiet_since_ms_ : front_.since_ms;
}

std::optional<int64_t> Connection::unserved_since_ms() const {
  const bool silent = phase_ == Phase::kOpen && protocol_ == nullptr && !HasHalfRequest();
  return silent ? quiet_since_ms_ : half_since_ms();
}

size_t Connection::memory() const {
  if (phase_ == Phase::kClosed) return 0;
  size_t owned = call_.session != nullptr ? call_.session->memory() : 0;
  if (parked_ && parked_->request != nullptr) owned += parked_->request->memory();
  return owned + in_.memory() + waiting_.memory() + wire_->memory();
}

void Connection::Relax() {
  if (phase_ != Phase::kOpen || unsent() != 0) return;
  waiting_.Relax();
  wire_->Relax();
}

void Connection::CheckDeadlines() {
  if (phase_ == Phase::kClosed) return;
  const auto is_over = [now = io_.coarse_ms](std::optional<int64_t> since, int64_t lasts) {
    return since && now - *since >= lasts;
  };
  const int64_t patience = io_.limits.half_request_ms;
  if (is_over(unread_since_ms_, patience)) return Break(CloseCause::kUnread);
  if (phase_ == Phase::kLingering && is_over(quiet_since_ms_, kLingerMs))
    return Close(*finished_for_);
  if (phase_ != Phase::kOpen || parked_) return;
  if (is_over(half_since_ms(), patience)) return CloseUnserved();
  if (unsent() != 0) return;
  if (is_over(quiet_since_ms_, io_.limits.idle_ms)) return Close(CloseCause::kIdle);
  if (is_over(quiet_since_ms_, kRelaxMs)) Relax();
}

void Connection::CloseUnserved() {
  if (wire_->Opening()) return Close(CloseCause::kTls);
  Close(HasHalfRequest() ? CloseCause::kHalfRequest : CloseCause::kIdle);
}

void Connection::CloseWhenIdle() {
  if (phase_ != Phase::kOpen) return;
  close_when_idle_ = true;
  if (!HasHalfRequest() && !parked_ && unsent() == 0) Finish(CloseCause::kShutdown);
}

void Connection::Finish(CloseCause cause) {
  phase_ = Phase::kFinishing;
  finished_for_ = cause;
  in_.Clear();
  if (unsent() == 0) Linger();
}

void Connection::Linger() {
  phase_ = Phase::kLingering;
  quiet_since_ms_ = io_.coarse_ms;
  wire_->FinishSending();
  if (!reading_) host_.ReadLater(*this);
}

void Connection::Close(CloseCause cause) {
  if (phase_ != Phase::kClosed) {
    phase_ = Phase::kClosed;
    io_.counters.closed_by(cause).Add(1);
    if (protocol_ != nullptr) io_.counters.ended[kind_].Add(1);
    parked_.reset();
    wire_->Close();
  }
  RemoveIfDone();
}

void Connection::RemoveIfDone() {
  if (!reading_ && with_wire_ == 0) host_.Remove(*this);
}

}  // namespace firn::front
