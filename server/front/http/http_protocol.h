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

// Some paths of the HTTP side. One object for each IO thread, used by that thread.
class HttpHandler {
 public:
  enum class Outcome : uint8_t {
    kNotMine,  // no path of this handler; nothing was done
    kAnswered,
    kPark,  // no ids or no new status report yet: see Parked
    kMore,  // the answer is long, and not complete: the same, but nothing is waited for
  };

  // How a request is answered that waits. The connection keeps it: nothing else does.
  struct Parked {
    // Answers it, or parks it again, as Handle; `answer` is as Handle left it.
    std::function<Outcome(DoorCall& door, HttpAnswer& answer)> retry{};
    std::chrono::microseconds again{};
    const void* waits_for = nullptr;  // as ServeStep::Park
    int64_t patience_ms = 0;          // as ServeStep::Park
    size_t memory = 0;                // bytes that it owns, if they are many
  };

  virtual ~HttpHandler() = default;

  // `answer` is clear when it comes in. Never blocks.
  virtual Outcome Handle(const HttpRequest& request, DoorCall& door, HttpAnswer& answer) = 0;

  // After kPark, once.
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

// HTTP/1.1 with requests in a row, and 1.0: finds the handler that knows the path. Malformed and
// oversized requests are answered and end the connection; unknown paths are answered with 404.
// `desk`, where the handlers ask for ids, must outlive it; null: they do not.
std::unique_ptr<Protocol> MakeHttpProtocol(IdDesk* desk,
                                           std::vector<std::unique_ptr<HttpHandler>> handlers);

}  // namespace firn::front
