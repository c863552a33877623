#include "client/socket/blocking_connection.h"

#include <string_view>

namespace firn::client {

Outcome BlockingConnection::Exchange(const Ask& ask, Micros until, Reply& reply) {
  usable_ = false;
  out_.clear();
  const int32_t sequence = talk_.Append(ask, out_);
  Outcome outcome = socket_->Send(out_, until);
  if (!outcome.answered()) return outcome;
  Tried<size_t> length = ReceiveFrame(until);
  if (!length.ok()) return std::move(length.outcome());
  idle_since_ = clock_.BootMicros();
  const std::string_view frame = std::string_view(in_).substr(0, *length);
  outcome = talk_.Read(frame, ask, sequence, idle_since_, reply);
  usable_ = outcome.spoke();
  return outcome;
}

Tried<size_t> BlockingConnection::ReceiveFrame(Micros until) {
  if (in_.size() < kReadBytes) in_.resize(kReadBytes);
  for (size_t held = 0;;) {
    const auto whole = WireCodec::FrameLength(std::string_view(in_).substr(0, held));
    if (!whole) return Outcome::Of(AttemptEnd::kBroken, "what came is too long for an answer");
    const size_t length = *whole;
    if (length > 0 && held > length) {
      return Outcome::Of(AttemptEnd::kBroken, "more came than one answer");
    }
    if (length > 0 && held == length) return length;
    if (length > in_.size()) in_.resize(length);
    Tried<size_t> got = socket_->Receive(in_.data() + held, in_.size() - held, until);
    if (!got.ok()) {
      got.outcome().HadHeld(held);
      return got;
    }
    held += *got;
  }
}

}  // namespace firn::client
