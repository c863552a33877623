#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/wire/id_check.h"
#include "client/wire/wire_codec.h"

namespace firn::client {

// The protocol of one connection, independent of the transport: numbers the requests, parses their
// answers, and checks that the server can have issued the ids in them. Used by one thread at
// a time.
class Conversation {
 public:
  // Sets the server's status `facts` as of `said`: from now on its ids are checked.
  void Know(const ServerFacts& facts, Micros said) { ids_ = IdCheck(facts, said); }

  // Appends a frame to `out`, and returns the number that its answer must have.
  int32_t Append(const Ask& ask, std::string& out) {
    sequence_ = sequence_ == INT32_MAX ? 1 : sequence_ + 1;
    codec_.AppendCall(ask, sequence_, out);
    return sequence_;
  }

  // As WireCodec::ReadAnswer; kBroken also for ids that the server cannot have issued.
  Outcome Read(std::string_view frame, const Ask& ask, int32_t sequence, Micros now, Reply& reply) {
    Outcome outcome = codec_.ReadAnswer(frame, ask, sequence, reply, ids_.layout());
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
