#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/units.h"
#include "thrift/gen/IdService.h"

namespace firn {

// A client of a server on loopback that uses only the generated stub: calls share a connection, and
// a broken one is replaced at the next call. Used by one thread.
class StubCaller {
 public:
  enum class End : uint8_t {
    kAnswered,
    kRefused,     // with a reason; the connection stays
    kLost,        // the connection ended before the answer, or timed out
    kUnreachable  // the connection was refused
  };

  explicit StubCaller(int port, Milliseconds answer_limit = Milliseconds(10'000));
  ~StubCaller();

  // Runs `ask` with the stub. trouble() describes a failed call until the next failure.
  End Call(const std::function<void(wire::IdServiceClient&)>& ask);
  const std::string& trouble() const { return trouble_; }

  // Uses another server, or the same one, over a new connection from the next call on.
  void GoTo(int port);

 private:
  class Connection;

  int port_;
  const Milliseconds answer_limit_;
  std::unique_ptr<Connection> connection_;
  std::string trouble_;
};

}  // namespace firn
