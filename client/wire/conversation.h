#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/wire/id_check.h"
#include "client/wire/wire_codec.h"

namespace firn::client {

// What is said on one connection, however its bytes travel: which number each request has, what its
// answer says, and whether the server at the other end can have given the ids in it. Used by one
// thread at a time.
class Conversation {
 public:
  // The server said `facts` of itself at the moment `said`: from now on its ids are looked at.
  void Know(const ServerFacts& facts, Micros said) { ids_ = IdCheck(facts, said); }

  // Puts one frame at the end of `out`; the number that the answer to it must have.
  int32_t Append(const Ask& ask, std::string& out) {
    sequence_ = sequence_ == INT32_MAX ? 1 : sequence_ + 1;
    codec_.AppendCall(ask, sequence_, out);
    return sequence_;
  }

  // As WireCodec::ReadAnswer; kBroken also for ids that the server cannot have given.
  Outcome Read(std::string_view frame, const Ask& ask, int32_t sequence, Micros now, Reply& reply) {
    Outcome outcome = codec_.ReadAnswer(frame, ask, sequence, reply);
    if (!outcome.answered()) return outcome;
    auto fault = ids_.FaultOf(ask, reply, now);
    return fault ? Outcome::Of(AttemptEnd::kBroken, *fault) : outcome;
  }

 private:
  WireCodec codec_;
  IdCheck ids_;
  int32_t sequence_ = 0;
};

}  // namespace firn::client
