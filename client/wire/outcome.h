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

// What became of asking one server once: how it ended, as the caller is told, and beside that what
// the client itself must know to go on. Made by the Pipeline, which holds the connection.
// CallPlan reads off it whether and where the call goes on, Fleet what to think of the server. A
// value, thread-compatible.
//
// Sharp edge: as it is constructed it is a success; whatever went wrong begins with Of().
struct Outcome {
  AttemptEnd end = AttemptEnd::kAnswered;
  std::optional<Reason> refusal{};  // of kRefused, and of nothing else
  Milliseconds retry_after{0};      // the server's advice; 0: none
  bool another_may_help = false;    // of a refusal: other servers might not refuse
  bool was_pooled = false;          // the connection was open before this was asked on it
  bool mid_answer = false;          // a part of the answer had come
  bool shared_blame = false;  // not held against the server: it is not its fault, or this end of
                              // a connection is told of another call on it already
  bool without_ids = false;   // the answer has no ids, as that of a draining server may
  bool lacks_method = false;  // it knows no such method, as an older server may
  std::string detail{};       // a sentence or a part of one, for a person; may be empty; Of sees
                              // to it that it is printable, whatever a server says

  bool answered() const { return end == AttemptEnd::kAnswered; }
  bool gave_ids() const { return answered() && !without_ids; }
  // A connection that was idle had been closed by the server: nothing says that it does ill now.
  bool stale() const { return end == AttemptEnd::kClosed && was_pooled && !mid_answer; }
  // No request has left: asking elsewhere cannot use up an id twice, and costs no retry budget.
  bool unsent() const {
    return end == AttemptEnd::kUnreachable || end == AttemptEnd::kConnectTimeout;
  }
  // It says nothing of the server.
  bool blameless() const { return end == AttemptEnd::kAbandoned; }
  // The server spoke, and made sense: the connection is as good as before.
  bool spoke() const { return answered() || end == AttemptEnd::kRefused || lacks_method; }

  // The connection ended, or the time did, when so many bytes of an answer had come.
  void HadHeld(size_t bytes) {
    mid_answer = bytes > 0;
    if (bytes == 0) return;
    if (!detail.empty()) detail += ", ";
    detail += Cat("after ", bytes, " bytes of an answer");
  }

  static Outcome Of(AttemptEnd end, std::string_view detail) {
    Outcome outcome;
    outcome.end = end;
    outcome.detail = ToPrintableUtf8(detail);
    return outcome;
  }
};

}  // namespace firn::client
