#include "client/socket/blocking_connection.h"

#include <string_view>

namespace firn::client {

Outcome BlockingConnection::Exchange(const Ask& ask, Micros until, Reply& reply) {
  usable_ = false;
  sequence_ = sequence_ == INT32_MAX ? 1 : sequence_ + 1;
  out_.clear();
  codec_.AppendCall(ask, sequence_, out_);
  Outcome outcome = socket_->Send(out_, until);
  if (!outcome.answered()) return outcome;
  size_t length = 0;
  outcome = ReceiveFrame(until, length);
  if (!outcome.answered()) return outcome;
  outcome = codec_.ReadAnswer(std::string_view(in_).substr(0, length), ask, sequence_, reply);
  usable_ = outcome.spoke();
  return outcome;
}

Outcome BlockingConnection::ReceiveFrame(Micros until, size_t& length) {
  if (in_.size() < kReadBytes) in_.resize(kReadBytes);
  for (size_t held = 0;;) {
    const auto whole = WireCodec::FrameLength(std::string_view(in_).substr(0, held));
    if (!whole) return Outcome::Of(AttemptEnd::kBroken, "what came is too long for an answer");
    length = *whole;
    if (length > 0 && held > length) {
      return Outcome::Of(AttemptEnd::kBroken, "more came than one answer");
    }
    if (length > 0 && held == length) return {};
    if (length > in_.size()) in_.resize(length);
    size_t got = 0;
    Outcome outcome = socket_->Receive(in_.data() + held, in_.size() - held, until, got);
    if (!outcome.answered()) {
      outcome.HadHeld(held);
      return outcome;
    }
    held += got;
  }
}

}  // namespace firn::client
