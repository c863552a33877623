#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "client/call_report.h"
#include "common/base/cat.h"
#include "common/base/units.h"
#include "common/base/utf8.h"

namespace firn::client {

// The outcome of one attempt: the result for the caller's report, and the facts that the client
// needs to continue. Created by the Pipeline, which owns the connection. Call derives from it
// whether and where to retry, Fleet the server's health. A value, thread-compatible.
//
// Sharp edge: a default-constructed outcome is a success; create failures with Of().
struct Outcome {
  AttemptEnd end = AttemptEnd::kAnswered;
  std::optional<Reason> refusal{};  // set for kRefused only
  Milliseconds retry_after{0};      // the server's advice; 0: none
  bool another_may_help = false;    // of a refusal: other servers might not refuse
  bool was_pooled = false;          // the connection was open before this attempt
  bool mid_answer = false;          // a part of the answer had arrived
  bool shared_blame = false;  // does not count against the server: it is not its fault, or another
                              // call on the connection has already reported this end of it
  int lost = 1;               // as how many requests without an answer this counts
  bool without_ids = false;   // the answer has no ids, as that of a draining server may
  bool lacks_method = false;  // the server does not have the method; it may be older
  std::string detail{};       // a sentence or a part of one, for people; may be empty; Of makes a
                              // server's text printable

  bool answered() const { return end == AttemptEnd::kAnswered; }
  bool gave_ids() const { return answered() && !without_ids; }
  // Returns whether the server had closed an idle connection, which is not a sign of a fault.
  bool stale() const { return end == AttemptEnd::kClosed && was_pooled && !mid_answer; }
  // Returns whether no request was sent: a retry then wastes no id and uses no retry budget.
  bool unsent() const {
    return end == AttemptEnd::kUnreachable || end == AttemptEnd::kConnectTimeout;
  }
  // Returns whether the outcome says nothing about the server's health.
  bool blameless() const { return end == AttemptEnd::kAbandoned; }
  // Returns whether the server sent a valid answer, so that the connection can be used again.
  bool spoke() const { return answered() || end == AttemptEnd::kRefused || lacks_method; }

  // The connection ended, or the attempt timed out, after that many bytes of an answer.
  void HadHeld(size_t bytes) {
    mid_answer = bytes > 0;
    if (bytes == 0) return;
    if (!detail.empty()) detail += ", ";
    detail += Cat("after ", bytes, " bytes of an answer");
  }

  static Outcome Of(AttemptEnd end, std::string_view detail = {}) {
    Outcome outcome;
    outcome.end = end;
    outcome.detail = ToPrintableUtf8(detail);
    return outcome;
  }
};

}  // namespace firn::client
