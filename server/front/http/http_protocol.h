#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "server/front/desk/id_desk.h"
#include "server/front/http/http_message.h"
#include "server/front/net/protocol.h"

namespace firn::front {

// Handles some of the paths. One object for each IO thread, used by that thread.
class HttpHandler {
 public:
  enum class Outcome : uint8_t {
    kNotMine,  // the handler does not serve this path
    kAnswered,
    kPark,  // no ids or no new status report yet: see Parked
    kMore,  // the answer is long and incomplete: like kPark, but continues in the next turn
  };

  // How to answer a request that waits. Only its connection has it.
  struct Parked {
    // Answers it, or parks it again, like Handle; `answer` is as Handle left it.
    std::function<Outcome(DoorCall& door, HttpAnswer& answer)> retry{};
    std::chrono::microseconds again{};
    const void* waits_for = nullptr;  // as in ServeStep::Park
    int64_t patience_ms = 0;          // as in ServeStep::Park
    size_t memory = 0;                // bytes that it owns, if they are many
  };

  virtual ~HttpHandler() = default;

  // `answer` is empty at first. Never blocks.
  virtual Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) = 0;

  // Must be called once after kPark.
  Parked TakeParked() { return std::exchange(parked_, {}); }

 protected:
  Outcome Park(Parked parked) {
    parked_ = std::move(parked);
    return Outcome::kPark;
  }
  Outcome More(Parked parked) {
    parked_ = std::move(parked);
    return Outcome::kMore;
  }

 private:
  Parked parked_;
};

// HTTP/1.1, also pipelined, and 1.0: finds the handler of the path. A malformed or oversized
// request is answered and ends the connection; an unknown path is answered with 404. `desk`, if the
// handlers request ids, must outlive it; null: they do not.
std::unique_ptr<Protocol> MakeHttpProtocol(IdDesk* desk,
                                           std::vector<std::unique_ptr<HttpHandler>> handlers);

}  // namespace firn::front
