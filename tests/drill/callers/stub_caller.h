#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/units.h"
#include "thrift/gen/IdService.h"

namespace firn {

// A client of a server on loopback that uses only the generated stub. Calls share a connection. A
// broken connection is replaced at the next call. Used by one thread.
class StubCaller {
 public:
  enum class End : uint8_t {
    kAnswered,
    kRefused,     // with a reason; the connection stays open
    kLost,        // the connection ended before the answer, or timed out
    kUnreachable  // the connection was refused
  };

  explicit StubCaller(int port, Milliseconds answer_limit = Milliseconds(10'000));
  ~StubCaller();

  // Runs `ask` with the stub. trouble() describes a failed call until the next failure.
  End Call(const std::function<void(wire::IdServiceClient&)>& ask);
  const std::string& trouble() const { return trouble_; }

  // From the next call on, uses the server at `port` over a new connection.
  void GoTo(int port);

 private:
  class Connection;

  int port_;
  const Milliseconds answer_limit_;
  std::unique_ptr<Connection> connection_;
  std::string trouble_;
};

}  // namespace firn
