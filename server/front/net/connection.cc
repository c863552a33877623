#include "server/front/net/connection.h"

#include <algorithm>
#include <utility>

namespace firn::front {
namespace {

// How long a finished connection's input is thrown away before it is ended with a reset.
constexpr int64_t kLingerMs = 1000;

// How many times a request's greatest size may be parsed before it is whole. Chunks that end in
// what looks like the end of all of them cost that; whoever just sends slowly costs next to
// nothing.
constexpr size_t kLooksInVainMax = 32;

}  // namespace

Connection::Connection(ConnectionHost& host, const Limits& limits, const ProtocolSet& protocols,
                       std::unique_ptr<Wire> wire, std::string peer)
    : host_(host),
      limits_(limits),
      protocols_(protocols),
      wire_(std::move(wire)),
      served_ms_(host.coarse_ms()),
      call_{.client = std::move(peer)} {
  wire_->Bind(*this);
}

void Connection::Start() { ReadMore(); }

void Connection::ReadMore() {
  if (reading_ || phase_ == Phase::kClosed) return;
  if (in_.MakeRoom(whole_, RequestBytesMax()).empty()) {
    OutBuffer& out = host_.output();
    const CloseCause cause = protocol_->TooLong(out);
    Send(out);
    return Finish(cause);
  }
  reading_ = true;
  wire_->Read(std::move(in_));
}

size_t Connection::RequestBytesMax() const {
  return 4 + std::max(limits_.frame_bytes_max,
                      limits_.http_header_bytes_max + 2 * limits_.http_body_bytes_max);
}

void Connection::OnRead(size_t n, InBuffer&& input) {
  reading_ = false;
  in_ = std::move(input);
  host_.counters().bytes_in.Add(n);
  if (phase_ != Phase::kOpen) {
    in_.Clear();
    if (phase_ == Phase::kClosed) return RemoveIfDone();
    return ReadMore();
  }
  if (park_until_ms_ == 0) Pump();
}

void Connection::OnReadFailed(bool peer_closed) {
  reading_ = false;
  if (phase_ != Phase::kOpen) return Close(cause_);
  if (!peer_closed) return Close(CloseCause::kPeerBroke);
  // It may have shut its side only, and still wait for answers.
  if (unsent() != 0) return Finish(CloseCause::kPeer);
  Close(CloseCause::kPeer);
}

void Connection::OnWritten(size_t n) {
  const bool was_paused = OutputPaused();
  with_wire_ -= n;
  if (phase_ == Phase::kClosed) return RemoveIfDone();
  host_.counters().bytes_out.Add(n);
  if (with_wire_ == 0 && !waiting_.empty()) WriteWaiting();
  unread_since_ms_ = unsent() == 0 ? 0 : host_.coarse_ms();
  if (phase_ == Phase::kFinishing && unsent() == 0) return Linger();
  if (phase_ != Phase::kOpen) return;
  if (was_paused && !OutputPaused() && MayServe()) return Pump();
  if (close_when_idle_) CloseWhenIdle();
}

void Connection::OnWriteFailed() {
  with_wire_ = 0;
  Close(phase_ == Phase::kOpen ? CloseCause::kPeerBroke : cause_);
}

void Connection::OnHandshakeFailed() {
  reading_ = false;
  Close(CloseCause::kTls);
}

void Connection::Resume() {
  if (MayServe()) Pump();
}

void Connection::Pump() {
  OutBuffer& out = host_.output();
  const bool was_parked = park_until_ms_ != 0;
  const int64_t begin_us = was_parked ? parked_since_us_ : host_.exact_us();
  size_t served = 0;
  const ServeStep last = ServeAll(out, &served);
  if (last.peer_waits) TellToGoOn(out);
  Send(out);
  if (served != 0) CountLatency(begin_us, served);
  const bool newly_parked = !was_parked || served != 0;
  if (last.kind == ServeStep::Kind::kPark && newly_parked) parked_since_us_ = host_.exact_us();
  if (phase_ == Phase::kOpen) GoOn(last);
}

ServeStep Connection::ServeAll(OutBuffer& out, size_t* count) {
  size_t& served = *count;
  ServeStep step = ServeStep::NeedMore();
  while (!in_.empty()) {
    step = ServeStep::Served(0);
    if (served == limits_.requests_per_turn_max) break;
    if (unsent() + out.size() > limits_.output_waiting_bytes_max) break;
    step = ServeOne(out);
    // The last answer of a connection, as the peer asked, is one as well.
    if (step.kind == ServeStep::Kind::kClose && step.cause == CloseCause::kPeer) ++served;
    if (step.kind != ServeStep::Kind::kServed) break;
    in_.Consume(step.bytes);
    whole_ = looked_at_ = looked_in_vain_ = 0;
    park_until_ms_ = 0;
    ++served;
    step = ServeStep::NeedMore();
  }
  if (served != 0) {
    served_ms_ = host_.coarse_ms();
    half_since_ms_ = 0;
    told_to_go_on_ = false;
    host_.counters().requests.Add(served);
  }
  return step;
}

void Connection::TellToGoOn(OutBuffer& out) {
  if (!std::exchange(told_to_go_on_, true)) out.Append(protocol_->go_on());
}

void Connection::CountLatency(int64_t since_us, size_t served) {
  LoopCounters& counters = host_.counters();
  auto& latency =
      protocol_ == protocols_.http.get() ? counters.http_latency : counters.thrift_latency;
  latency.Add(host_.exact_us() - since_us, served);
}

ServeStep Connection::ServeOne(OutBuffer& out) {
  if (protocol_ == nullptr) {
    const Speech speech = Recognise(in_.view());
    if (speech == Speech::kUndecided) return ServeStep::NeedMore();
    protocol_ = protocols_.For(speech);
    if (protocol_ == nullptr) return ServeStep::Close(CloseCause::kUnknownProtocol);
  }
  const std::string_view in = in_.view();
  if (in.size() < whole_) return ServeStep::NeedMore(whole_);
  const bool guess = whole_ == 0 && looked_at_ != 0;
  if (guess && !protocol_->MayBeWhole(in, looked_at_)) return ServeStep::NeedMore();
  call_.last = park_until_ms_ != 0 && host_.exact_ms() >= park_until_ms_;
  const ServeStep step = protocol_->Serve(in, call_, out);
  return step.kind == ServeStep::Kind::kNeedMore ? NotWhole(step) : step;
}

ServeStep Connection::NotWhole(ServeStep step) {
  looked_at_ = in_.view().size();
  looked_in_vain_ += looked_at_;
  const bool too_often = looked_in_vain_ > kLooksInVainMax * RequestBytesMax();
  return too_often ? ServeStep::Close(CloseCause::kHalfRequest) : step;
}

void Connection::Send(OutBuffer& out) {
  if (out.empty()) return;
  if (with_wire_ == 0) {
    const size_t gone = wire_->WriteNow(out.view());
    host_.counters().bytes_out.Add(gone);
    out.Consume(gone);
  }
  if (out.empty()) return;
  waiting_.Append(out.view());
  out.Clear();
  if (with_wire_ != 0) return;
  unread_since_ms_ = host_.coarse_ms();
  WriteWaiting();
}

void Connection::WriteWaiting() {
  with_wire_ = waiting_.size();
  wire_->Write(waiting_);
}

void Connection::GoOn(ServeStep last) {
  switch (last.kind) {
    case ServeStep::Kind::kClose:
      return Finish(last.cause);
    case ServeStep::Kind::kPark:
      if (park_until_ms_ == 0) {
        park_until_ms_ = host_.exact_ms() + limits_.issue_wait_ms;
        host_.counters().parked.Add(1);
      }
      return host_.Park(*this, last.again_us);
    case ServeStep::Kind::kServed:
      if (OutputPaused()) return host_.counters().output_paused.Add(1);
      host_.counters().yielded.Add(1);
      return host_.ResumeLater(*this);
    case ServeStep::Kind::kNeedMore:
      break;
  }
  whole_ = last.bytes;
  if (in_.empty() && close_when_idle_) return Finish(CloseCause::kShutdown);
  if (!in_.empty() && half_since_ms_ == 0) half_since_ms_ = host_.coarse_ms();
  if (!reading_) host_.ReadLater(*this);
}

void Connection::CheckDeadlines() {
  const int64_t now = host_.coarse_ms();
  if (phase_ == Phase::kClosed) return;
  if (unread_since_ms_ != 0 && now - unread_since_ms_ >= limits_.half_request_ms) {
    return Close(phase_ == Phase::kOpen ? CloseCause::kUnread : cause_);
  }
  if (phase_ == Phase::kLingering && now - served_ms_ >= kLingerMs) return Close(cause_);
  if (phase_ != Phase::kOpen || park_until_ms_ != 0) return;
  if (half_since_ms_ != 0 && now - half_since_ms_ >= limits_.half_request_ms) {
    return Close(CloseCause::kHalfRequest);
  }
  if (wire_->Opening() && now - served_ms_ >= limits_.half_request_ms) {
    return Close(CloseCause::kTls);
  }
  if (unsent() == 0 && now - served_ms_ >= limits_.idle_ms) Close(CloseCause::kIdle);
}

void Connection::CloseWhenIdle() {
  if (phase_ != Phase::kOpen) return;
  close_when_idle_ = true;
  if (!HasHalfRequest() && unsent() == 0) Finish(CloseCause::kShutdown);
}

void Connection::Finish(CloseCause cause) {
  phase_ = Phase::kFinishing;
  cause_ = cause;
  in_.Clear();
  if (unsent() == 0) Linger();
}

void Connection::Linger() {
  phase_ = Phase::kLingering;
  served_ms_ = host_.coarse_ms();
  wire_->FinishSending();
  if (!reading_) host_.ReadLater(*this);
}

void Connection::Close(CloseCause cause) {
  if (phase_ != Phase::kClosed) {
    phase_ = Phase::kClosed;
    host_.counters().closed_by(cause).Add(1);
    wire_->Close();
  }
  RemoveIfDone();
}

void Connection::RemoveIfDone() {
  if (!reading_ && with_wire_ == 0) host_.Remove(*this);
}

}  // namespace firn::front
