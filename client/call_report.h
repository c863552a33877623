#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/units.h"
#include "common/id/reason.h"

namespace firn {

// What became of asking one server.
enum class AttemptEnd : uint8_t {
  kAnswered,
  kUnreachable,     // refused, no route, reset while connecting
  kConnectTimeout,  // nobody took the connection in time
  kClosed,          // the connection ended before a byte of the answer
  kTimeout,         // no answer, or not all of it, in time
  kBroken,          // what came is not an answer to what was asked
  kWrongService,    // it is not an IdService of this cluster
  kRefused,         // a typed "no"
  kAbandoned        // another server's answer came first
};
std::string_view AttemptEndName(AttemptEnd end);

struct CallAttempt {
  std::string server{};
  AttemptEnd end = AttemptEnd::kAnswered;
  std::optional<Reason> refusal{};
  std::chrono::microseconds took{0};
  std::string detail{};  // a sentence, or empty

  // "10.0.0.7:7609 refused (OVERLOADED) after 0.3 ms: too much is asked of this server"
  std::string ToString() const;
};

// Everything that a call tried, first to last, in calls that were answered too. The same is in the
// sentence of a failed call's Status. A value, thread-compatible.
struct CallReport {
  std::vector<CallAttempt> attempts{};
  std::optional<Reason> refusal{};  // the one that the caller was given
  Milliseconds retry_after{0};      // the server's advice with it; 0: none
  bool from_memory = false;         // a local range had it; nobody was asked
};

}  // namespace firn
