#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/base/units.h"
#include "thrift/gen/IdService.h"

namespace firn {

// A server on loopback as a program asks it that knows the generated stub and nothing more: each
// call goes over the connection of the one before, and one that broke is made anew by the next.
// Used by one thread.
class StubCaller {
 public:
  enum class End : uint8_t {
    kAnswered,
    kRefused,     // with a reason; the connection stays
    kLost,        // the connection ended before the answer, or took too long
    kUnreachable  // nobody took a connection
  };

  explicit StubCaller(int port, Milliseconds answer_limit = Milliseconds(10'000));
  ~StubCaller();

  // Runs `ask` with the stub. What trouble() says of anything but an answer stays until the next.
  End Call(const std::function<void(wire::IdServiceClient&)>& ask);
  const std::string& trouble() const { return trouble_; }

  // From the next call on another server, or the same one, over a connection of its own.
  void GoTo(int port);

 private:
  class Connection;

  int port_;
  const Milliseconds answer_limit_;
  std::unique_ptr<Connection> connection_;
  std::string trouble_;
};

}  // namespace firn
