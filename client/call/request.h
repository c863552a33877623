#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "client/fleet/server.h"
#include "client/wire/ask.h"
#include "client/wire/outcome.h"

namespace firn::client {

// A request to a server. Pipelines keep it alive until the server has answered, even if its call
// has ended, because an answer can only be read with its request.
class Request {
 public:
  explicit Request(Ask what) : ask(std::move(what)) {}
  virtual ~Request() = default;
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  // Receives the outcome of the attempt with this number. `last`: false if the answer may still
  // arrive. Called within a turn, never after `settled`. Only marks a job ready.
  virtual void OnOutcome(size_t attempt, Outcome outcome, bool last) = 0;

  const Ask ask;
  Reply reply{};         // set by the first answered attempt
  bool settled = false;  // it was answered, or its call has ended
};

using RequestPtr = std::shared_ptr<Request>;

// The connection on which an attempt waits for its answer.
class Connection {
 public:
  // Returns the outcome of an attempt that times out now.
  virtual Outcome Silence() const = 0;

 protected:
  ~Connection() = default;
};

// Sends requests to servers.
class Sender {
 public:
  // Sends the request as its attempt of this number. Returns the connection, which reports the
  // outcome later, or null if none to this server may be opened yet. `fresh`: uses no connection
  // that is already open.
  virtual std::shared_ptr<const Connection> Send(RequestPtr request, size_t attempt,
                                                 const ServerPtr& server, bool fresh) = 0;

 protected:
  ~Sender() = default;
};

}  // namespace firn::client
