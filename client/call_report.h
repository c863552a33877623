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

// The outcome of one attempt at one server.
enum class AttemptEnd : uint8_t {
  kAnswered,
  kUnreachable,     // refused, no route, reset while connecting
  kConnectTimeout,  // the connection was not accepted in time
  kClosed,          // the connection ended before the first byte of the answer
  kTimeout,         // no complete answer in time
  kBroken,          // the received bytes are not an answer to the request
  kWrongService,    // the server is not an IdService of this cluster
  kRefused,         // the server refused with a reason
  kAbandoned        // another server's answer came first
};
std::string_view AttemptEndName(AttemptEnd end);

struct CallAttempt {
  std::string server{};
  AttemptEnd end = AttemptEnd::kAnswered;
  std::optional<Reason> refusal{};
  std::chrono::microseconds took{0};
  std::string detail{};  // a sentence, or ""

  // "10.0.0.7:7609 refused (OVERLOADED) after 0.3 ms: the server's queue is full"
  std::string ToString() const;
};

// All attempts of a call in order, also if the call succeeded. The message of a failed call's
// Status contains the same facts. A value, thread-compatible.
struct CallReport {
  std::vector<CallAttempt> attempts{};
  std::optional<Reason> refusal{};  // the refusal that the caller received
  Milliseconds retry_after{0};      // the server's advised wait; 0: none
  bool from_memory = false;         // the id came from a local range, without a server
};

}  // namespace firn
