#include "client/call/pipeline.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "common/base/cat.h"

namespace firn::client {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadBytes = 16 * 1024;
constexpr std::string_view kTlsAlert = "\x15\x03";

}  // namespace

Pipeline::Pipeline(const PipelineHost& host, Owner& owner, ServerPtr server)
    : host_(host),
      owner_(owner),
      server_(std::move(server)),
      spoke_plainly_(server_->spoke_plainly),
      socket_(host.io.context().get_executor()),
      connector_(std::make_shared<Connector>(host.io.context(), host.fds)),
      timer_(host.io.context().get_executor()),
      in_(kReadBytes, '\0') {}

Pipeline::~Pipeline() { CloseSocket(socket_, host_.fds); }

// --- opening ------------------------------------------------------------------------------------

void Pipeline::Open(std::vector<Address> addresses, Checked checked) {
  checked_ = std::move(checked);
  ArmTimer(host_.limit);
  connector_->Start(std::move(addresses), host_.limit,
                    [self = shared_from_this()](Connector::Result result) {
                      self->OnConnected(std::move(result));
                    });
}

void Pipeline::OnConnected(Connector::Result result) {
  const IoThread::Turn turn(host_.io);
  if (result.socket == nullptr) {
    if (result.own_fault) host_.fleet.Count(&ClientCounters::own_faults);
    host_.fleet.Dialled(*server_, std::nullopt, result.led_nowhere, now());
    Outcome failed = Outcome::Of(AttemptEnd::kUnreachable, "connect: " + result.error.message());
    failed.shared_blame = result.own_fault;
    Close(std::move(failed));
  } else {
    socket_ = std::move(*result.socket);
    host_.fleet.Dialled(*server_, result.address, result.led_nowhere, now());
    if (server_->tls) {
      Agree(result.address);
    } else {
      AskForStatus();
    }
    if (phase_ != Phase::kClosed) Read();
  }
}

void Pipeline::Agree(const Address& address) {
  phase_ = Phase::kAgreeing;
  Result<std::unique_ptr<TlsTalk>> talk = host_.tls.Begin(server_->name, server_->endpoint.host);
  if (!talk.ok()) {
    Outcome failed = Outcome::Of(AttemptEnd::kUnreachable, "tls: " + talk.status().message());
    failed.shared_blame = true;
    return Close(std::move(failed));
  }
  sealing_ = std::make_unique<Sealing>(*std::move(talk), address, std::string(kReadBytes, '\0'));
  WriteSealed();
}

void Pipeline::AskForStatus() {
  phase_ = Phase::kChecking;
  std::string bytes;
  status_sequence_ = talk_.Append({.method = Ask::Method::kStatus}, bytes);
  Write(bytes);
}

void Pipeline::TakeStatus(std::string_view frame) {
  constexpr auto kStatus = Ask::Method::kStatus;
  Outcome asked = talk_.Read(frame, {.method = kStatus}, status_sequence_, now(), reply_);
  const ServerFacts facts = asked.answered() ? *reply_.facts : ServerFacts();
  Outcome admitted = host_.fleet.Admit(std::move(asked), facts);
  if (!admitted.answered()) return Close(std::move(admitted));
  talk_.Know(facts, now());
  if (sealing_ == nullptr) server_->spoke_plainly = true;
  EndChecking(admitted, facts);
}

void Pipeline::EndChecking(const Outcome& outcome, const ServerFacts& facts) {
  if (outcome.answered()) {
    phase_ = Phase::kOpen;
    opened_ = true;
    if (!host_.counts) host_.fleet.Connected(*server_);
    host_.io.FlushLater(shared_from_this());
  }
  if (const Checked checked = std::exchange(checked_, nullptr)) checked(*this, outcome, facts);
}

// --- requests -----------------------------------------------------------------------------------

void Pipeline::Send(RequestPtr request, size_t attempt) {
  const int32_t sequence = talk_.Append(request->ask, out_);
  waiting_.push_back({.sequence = sequence,
                      .request = std::move(request),
                      .attempt = attempt,
                      .began = now(),
                      .pooled = phase_ == Phase::kOpen});
  if (!timer_armed_) ArmTimer(host_.limit);
  if (!std::exchange(flush_asked_, true)) host_.io.FlushLater(shared_from_this());
}

bool Pipeline::Gathers(const Ask& ask) const {
  if (!flush_asked_ || waiting_.empty() || ask.method != Ask::Method::kGetId) return false;
  const Ask& last = waiting_.back().request->ask;
  return last.method == ask.method && last.tag == ask.tag;
}

void Pipeline::Flush() {
  flush_asked_ = false;
  if (phase_ == Phase::kOpen && writing_.empty()) Write(out_);
}

void Pipeline::Write(std::string& bytes) {
  if (sealing_ == nullptr) return WriteAsIs(bytes);
  if (!bytes.empty()) sealing_->talk->Seal(bytes);
  bytes.clear();
  WriteSealed();
}

void Pipeline::WriteSealed() {
  if (writing_.empty()) WriteAsIs(sealing_->talk->sealed());
}

// Sends what the socket accepts now, and the rest when it has room.
void Pipeline::WriteAsIs(std::string& bytes) {
  if (bytes.empty()) return;
  error_code error;
  const size_t sent = socket_.write_some(asio::buffer(bytes), error);
  if (sent == bytes.size()) return bytes.clear();
  bytes.erase(0, sent);
  writing_.swap(bytes);
  bytes.clear();
  asio::async_write(socket_, asio::buffer(writing_),
                    [self = shared_from_this()](const error_code& failed, size_t) {
                      self->writing_.clear();
                      // The pending read notices a broken connection.
                      if (failed) return;
                      if (self->sealing_ != nullptr) self->WriteSealed();
                      if (!self->out_.empty()) self->Flush();
                    });
}

// --- answers ------------------------------------------------------------------------------------

void Pipeline::Read() {
  const asio::mutable_buffer room = sealing_ == nullptr
                                        ? asio::buffer(in_.data() + held_, in_.size() - held_)
                                        : asio::buffer(sealing_->came);
  socket_.async_read_some(room, [self = shared_from_this()](const error_code& error, size_t n) {
    self->OnRead(error, n);
  });
}

void Pipeline::OnRead(const error_code& error, size_t n) {
  if (phase_ == Phase::kClosed) return;
  {
    const IoThread::Turn turn(host_.io);
    TakeBytes(error, n);
  }
  // Requests that the answers led to were sent before the next answers are read.
  if (phase_ != Phase::kClosed) Read();
}

void Pipeline::TakeBytes(const error_code& error, size_t n) {
  if (error) {
    Close(ClosedBy(error));
  } else if (sealing_ != nullptr) {
    TakeSealed(std::string_view(sealing_->came).substr(0, n));
  } else {
    held_ += n;
    TakeAnswers();
  }
}

Outcome Pipeline::ClosedBy(const error_code& error) const {
  const std::string said = error == asio::error::eof ? std::string() : error.message();
  if (phase_ == Phase::kAgreeing) return sealing_->talk->FailureOf(said);
  Outcome closed = Outcome::Of(AttemptEnd::kClosed, said);
  const bool unknown = sealing_ == nullptr && !spoke_plainly_;
  if (phase_ == Phase::kChecking && unknown && held_ == 0) {
    closed.detail +=
        Cat(said.empty() ? "" : ", ", "before it answered anything: it may require TLS");
  }
  closed.HadHeld(held_);
  return closed;
}

void Pipeline::TakeSealed(std::string_view bytes) {
  TlsTalk& talk = *sealing_->talk;
  talk.Feed(bytes);
  if (phase_ == Phase::kAgreeing && talk.state() == TlsTalk::State::kAgreed) AskForStatus();
  while (phase_ != Phase::kClosed) {
    const size_t n = talk.Read(in_.data() + held_, in_.size() - held_);
    if (n == 0) break;
    held_ += n;
    TakeAnswers();
  }
  if (phase_ == Phase::kClosed) return;
  WriteSealed();  // also sends the alert with the reason
  if (talk.state() != TlsTalk::State::kFailed) return;
  Outcome failed = talk.FailureOf({});
  if (phase_ == Phase::kOpen) failed.end = AttemptEnd::kBroken;
  Close(std::move(failed));
}

void Pipeline::TakeAnswers() {
  const std::string_view all(in_.data(), held_);
  size_t at = 0;
  while (phase_ != Phase::kClosed) {
    const auto length = WireCodec::FrameLength(all.substr(at));
    if (!length) {
      const bool first = phase_ == Phase::kChecking;
      return Close(Outcome::Of(first ? AttemptEnd::kWrongService : AttemptEnd::kBroken,
                               first && all.starts_with(kTlsAlert)
                                   ? "it speaks TLS, but the server list does not say so"
                                   : "its answer exceeds the maximum length"));
    }
    if (*length == 0 || all.size() - at < *length) {
      // Moves the rest to the front, and enlarges the buffer to the answer's length.
      std::memmove(in_.data(), in_.data() + at, held_ - at);
      held_ -= at;
      if (*length > in_.size()) in_.resize(*length);
      return;
    }
    const std::string_view frame = all.substr(at, *length);
    at += *length;
    heard_at_ = now();
    if (phase_ == Phase::kChecking) {
      TakeStatus(frame);
    } else {
      TakeAnswer(frame);
    }
  }
}

void Pipeline::TakeAnswer(std::string_view frame) {
  if (waiting_.empty()) {
    // A protocol violation, although no request has failed because of it.
    const Outcome unasked = Outcome::Of(AttemptEnd::kBroken, "an answer belongs to no call");
    host_.fleet.Borrow(*server_);
    host_.fleet.Done(*server_, {}, unasked, Micros(0), now());
    return Close(unasked);
  }
  const Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  Request& request = *first.request;
  Reply& reply = request.settled ? reply_ : request.reply;
  Outcome outcome = talk_.Read(frame, request.ask, first.sequence, now(), reply);
  outcome.without_ids = !request.ask.WantsIds();
  if (outcome.spoke()) {
    End(first, std::move(outcome));
    if (left_over()) Close(Outcome::Of(AttemptEnd::kAbandoned));
    return;
  }
  End(first, outcome);
  // The other requests must not blame the server again: it is already quarantined.
  outcome.end = AttemptEnd::kClosed;
  outcome.mid_answer = outcome.shared_blame = true;
  Close(std::move(outcome));
}

// --- the end ------------------------------------------------------------------------------------

void Pipeline::Close(Outcome why) {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  const bool was_opening = opening();
  if (was_opening) server_->spoke_plainly = false;
  const bool unsaid = phase_ == Phase::kChecking && !why.spoke() && !why.blameless();
  if (phase_ == Phase::kAgreeing && sealing_ != nullptr && !why.blameless()) {
    host_.fleet.Dialled(*server_, std::nullopt, {&sealing_->address, 1}, now());
  } else if (unsaid || why.end == AttemptEnd::kConnectTimeout) {
    host_.fleet.Dialled(*server_, std::nullopt, {}, now());
  }
  phase_ = Phase::kClosed;
  connector_->Stop();
  CloseSocket(socket_, host_.fds);
  timer_.cancel();
  owner_.OnClosed(*this);
  if (was_opening) EndChecking(why, {});
  std::deque<Waiting> ended;
  ended.swap(waiting_);
  for (const Waiting& one : ended) {
    Outcome outcome = why;
    outcome.was_pooled = one.pooled;
    End(one, std::move(outcome));
    // A request that was reported late does not report this end, so the next one does.
    if (!one.late) why.shared_blame = true;
  }
}

void Pipeline::End(const Waiting& waiting, Outcome outcome) {
  Request& request = *waiting.request;
  if (!waiting.late) Report(waiting, outcome);
  if (request.settled) {
    if (outcome.answered() && host_.counts) host_.fleet.Count(&ClientCounters::late_answers);
    return;
  }
  request.settled = outcome.answered();
  request.OnOutcome(waiting.attempt, std::move(outcome), /*last=*/true);
}

void Pipeline::Report(const Waiting& waiting, const Outcome& outcome) {
  if (host_.counts || !opened_) {
    host_.fleet.Done(*server_, waiting.request->ask.tag, outcome, now() - waiting.began, now());
  } else {
    host_.fleet.GiveBack(*server_);
  }
}

// --- time ---------------------------------------------------------------------------------------

void Pipeline::ArmTimer(Micros within) {
  timer_armed_ = true;
  timer_.expires_after(within);
  timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error && self->phase_ != Phase::kClosed) self->OnTimer();
  });
}

void Pipeline::OnTimer() {
  const IoThread::Turn turn(host_.io);
  timer_armed_ = false;
  // Defers once: each time the timer fires, a callback may have blocked the thread again.
  deferred_ = host_.io.reads_first() && !deferred_;
  if (deferred_) return ArmTimer(IoThread::kReading);
  if (opening()) return Close(Silence());
  CheckSilence();
}

void Pipeline::CheckSilence() {
  if (waiting_.empty()) return;
  Micros next = std::max(heard_at_, waiting_.front().began) + host_.limit;
  const Micros limit = host_.limit;
  const auto lost = [&](const Waiting& one) {
    return !one.late && !one.request->settled && now() >= one.began + limit / 2;
  };
  if (now() >= next) {
    Outcome silence = Silence();
    // Each lost request counts as a silence, so that the next calls are sent elsewhere. Excluded
    // are settled requests, requests that were counted when they were late, and requests that have
    // waited for less than half of an attempt's time.
    const int least = waiting_.front().late ? 0 : 1;
    silence.lost = std::max(least, static_cast<int>(std::ranges::count_if(waiting_, lost)));
    return Close(std::move(silence));
  }
  bool reported = false;
  for (Waiting& one : waiting_) {
    if (now() < one.began + host_.limit) {
      next = std::min(next, one.began + host_.limit);
      break;
    }
    if (!one.late && !one.request->settled) ReportLate(one, std::exchange(reported, true));
  }
  ArmTimer(next - now());
}

void Pipeline::ReportLate(Waiting& waiting, bool shared_blame) {
  waiting.late = true;
  Outcome silence = Silence();
  silence.shared_blame = shared_blame;
  if (host_.counts) host_.fleet.Count(&ClientCounters::queued);
  Report(waiting, silence);
  waiting.request->OnOutcome(waiting.attempt, std::move(silence), /*last=*/false);
}

}  // namespace firn::client
