#include "client/call/pipeline.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/write.hpp>

#include "client/call/async_caller.h"

namespace firn::client {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr size_t kReadBytes = 16 * 1024;

}  // namespace

Pipeline::Pipeline(asio::io_context& io, Fleet& fleet, CloseOnFork& fds, AsyncCaller& caller,
                   ServerPtr server)
    : fleet_(fleet),
      fds_(fds),
      caller_(caller),
      server_(std::move(server)),
      socket_(io.get_executor()),
      connector_(std::make_shared<Connector>(io, fds)),
      open_timer_(io.get_executor()),
      in_(kReadBytes, '\0') {}

Pipeline::~Pipeline() { CloseSocket(socket_, fds_); }

// --- opening ------------------------------------------------------------------------------------

void Pipeline::Open(std::vector<Address> addresses, Micros within, Checked checked) {
  checked_ = std::move(checked);
  AwaitEndOfOpening(within);
  connector_->Start(std::move(addresses), within,
                    [self = shared_from_this()](Connector::Result result) {
                      self->OnConnected(std::move(result));
                    });
}

void Pipeline::AwaitEndOfOpening(Micros within) {
  open_timer_.expires_after(within);
  open_timer_.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || !self->opening()) return;
    self->caller_.BeginTurn();
    self->Close(self->Silence());
    self->caller_.EndTurn();
  });
}

void Pipeline::OnConnected(Connector::Result result) {
  caller_.BeginTurn();
  if (result.socket == nullptr) {
    if (result.own_fault) fleet_.Count(&ClientCounters::own_faults);
    fleet_.Dialled(*server_, std::nullopt, result.led_nowhere, caller_.now());
    Outcome failed = Outcome::Of(AttemptEnd::kUnreachable, "connect: " + result.error.message());
    failed.shared_blame = result.own_fault;
    Close(std::move(failed));
  } else {
    phase_ = Phase::kChecking;
    socket_ = std::move(*result.socket);
    fleet_.Dialled(*server_, result.address, result.led_nowhere, caller_.now());
    std::string bytes;
    status_sequence_ = talk_.Append({.method = Ask::Method::kStatus}, bytes);
    Write(bytes);
    Read();
  }
  caller_.EndTurn();
}

void Pipeline::TakeStatus(std::string_view frame) {
  constexpr auto kStatus = Ask::Method::kStatus;
  Reply reply;
  Outcome asked = talk_.Read(frame, {.method = kStatus}, status_sequence_, caller_.now(), reply);
  Outcome admitted = fleet_.Admit(std::move(asked), reply.facts);
  if (!admitted.answered()) return Close(std::move(admitted));
  talk_.Know(reply.facts, caller_.now());
  EndChecking(admitted, reply.facts);
}

void Pipeline::EndChecking(const Outcome& outcome, const ServerFacts& facts) {
  open_timer_.cancel();
  if (outcome.answered()) {
    phase_ = Phase::kOpen;
    caller_.FlushLater(*this);
  }
  if (const Checked checked = std::exchange(checked_, nullptr)) checked(outcome, facts);
}

// --- calls --------------------------------------------------------------------------------------

void Pipeline::Send(const AsyncCallPtr& call, uint32_t number) {
  const int32_t sequence = talk_.Append(call->ask, out_);
  waiting_.push_back({sequence, call, number, phase_ == Phase::kOpen});
  if (!std::exchange(flush_asked_, true)) caller_.FlushLater(*this);
}

void Pipeline::Flush() {
  flush_asked_ = false;
  if (phase_ == Phase::kOpen && writing_.empty()) Write(out_);
}

// Sends what the socket takes at once, and the rest when it has room.
void Pipeline::Write(std::string& bytes) {
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
                      // A connection that broke is noticed by its read.
                      if (!failed && !self->out_.empty()) self->Flush();
                    });
}

// --- answers ------------------------------------------------------------------------------------

void Pipeline::Read() {
  socket_.async_read_some(
      asio::buffer(in_.data() + held_, in_.size() - held_),
      [self = shared_from_this()](const error_code& error, size_t n) { self->OnRead(error, n); });
}

void Pipeline::OnRead(const error_code& error, size_t n) {
  if (phase_ == Phase::kClosed) return;
  caller_.BeginTurn();
  if (error) {
    Outcome closed = Outcome::Of(AttemptEnd::kClosed,
                                 error == asio::error::eof ? std::string() : error.message());
    closed.HadHeld(held_);
    Close(std::move(closed));
  } else {
    held_ += n;
    TakeAnswers();
  }
  // What the answers led to is sent before the next answer is looked for.
  caller_.EndTurn();
  if (phase_ != Phase::kClosed) Read();
}

void Pipeline::TakeAnswers() {
  const std::string_view all(in_.data(), held_);
  size_t at = 0;
  while (phase_ != Phase::kClosed) {
    const auto length = WireCodec::FrameLength(all.substr(at));
    if (!length) {
      return Close(
          Outcome::Of(phase_ == Phase::kChecking ? AttemptEnd::kWrongService : AttemptEnd::kBroken,
                      "what came is too long for an answer"));
    }
    if (*length == 0 || all.size() - at < *length) {
      // The rest goes to the front, and the buffer becomes as long as the answer will be.
      std::memmove(in_.data(), in_.data() + at, held_ - at);
      held_ -= at;
      if (*length > in_.size()) in_.resize(*length);
      return;
    }
    const std::string_view frame = all.substr(at, *length);
    at += *length;
    heard_at_ = caller_.now();
    if (phase_ == Phase::kChecking) {
      TakeStatus(frame);
    } else {
      TakeAnswer(frame);
    }
  }
}

void Pipeline::TakeAnswer(std::string_view frame) {
  if (waiting_.empty()) {
    return Close(Outcome::Of(AttemptEnd::kBroken, "an answer came to no call"));
  }
  const Waiting first = std::move(waiting_.front());
  waiting_.pop_front();
  Outcome outcome = talk_.Read(frame, first.call->ask, first.sequence, caller_.now(), reply_);
  const bool nonsense = !outcome.spoke();
  Outcome closing = nonsense ? outcome : Outcome();
  caller_.OnEnded(first.call, first.number, std::move(outcome), reply_);
  if (phase_ == Phase::kClosed) return;
  if (!nonsense && left_over()) return Close(Outcome::Of(AttemptEnd::kAbandoned, {}));
  if (!nonsense) return;
  // The others are not to blame the server for the same thing again: it is in quarantine by now.
  closing.end = AttemptEnd::kClosed;
  closing.mid_answer = closing.shared_blame = true;
  Close(std::move(closing));
}

// --- the end ------------------------------------------------------------------------------------

void Pipeline::Close(Outcome why) {
  if (phase_ == Phase::kClosed) return;
  const auto self = shared_from_this();
  const bool was_opening = opening();
  if (why.end == AttemptEnd::kConnectTimeout) {
    fleet_.Dialled(*server_, std::nullopt, {}, caller_.now());
  }
  phase_ = Phase::kClosed;
  connector_->Stop();
  CloseSocket(socket_, fds_);
  caller_.OnClosed(*this);
  if (was_opening) EndChecking(why, {});
  std::deque<Waiting> ended;
  ended.swap(waiting_);
  Reply reply;
  for (const Waiting& one : ended) {
    Outcome outcome = why;
    outcome.was_pooled = one.pooled;
    caller_.OnEnded(one.call, one.number, std::move(outcome), reply);
    why.shared_blame = true;
  }
}

}  // namespace firn::client
