#pragma once

#include <cstddef>
#include <string>
#include <utility>

#include "client/call_report.h"
#include "common/units.h"

namespace firn::client {

// What became of asking one server, with all that decides how to go on.
struct Outcome {
  AttemptEnd end = AttemptEnd::kAnswered;
  RefusalReason refusal = RefusalReason::kNone;
  Milliseconds retry_after{0};    // the server's advice; 0: none
  bool another_may_help = false;  // of a refusal
  bool was_pooled = false;        // the connection had been used before
  bool mid_answer = false;        // of kClosed: the answer had begun
  bool shared_blame = false;      // not the server's, or told of another call already
  std::string detail{};

  bool answered() const { return end == AttemptEnd::kAnswered; }
  // A connection that was idle had been closed by the server: nothing says that it does ill now.
  bool stale() const { return end == AttemptEnd::kClosed && was_pooled && !mid_answer; }
  // No request has left.
  bool unsent() const {
    return end == AttemptEnd::kUnreachable || end == AttemptEnd::kConnectTimeout ||
           end == AttemptEnd::kNoRoom;
  }
  // It says nothing of the server.
  bool blameless() const { return end == AttemptEnd::kAbandoned || end == AttemptEnd::kNoRoom; }
  // The server spoke, and made sense.
  bool spoke() const { return answered() || end == AttemptEnd::kRefused; }

  // The connection ended, or the time did, when so many bytes of an answer had come.
  void HadHeld(size_t bytes) {
    mid_answer = bytes > 0;
    if (bytes == 0) return;
    if (!detail.empty()) detail += ", ";
    detail += "after " + std::to_string(bytes) + " bytes of an answer";
  }

  static Outcome Of(AttemptEnd end, std::string detail) {
    Outcome outcome;
    outcome.end = end;
    outcome.detail = std::move(detail);
    return outcome;
  }
};

}  // namespace firn::client
