#pragma once

#include <cstdint>
#include <memory>

#include "server/front/net/limits.h"
#include "server/front/net/protocol.h"

namespace firn::wire {
class IdServiceIf;
}

namespace firn::front {

// Thrown by a handler when there are no ids yet; says when to ask again. Not a std::exception on
// purpose: the generated code lets it pass, and the frame is processed again later.
struct NoIdsYet {
  int64_t again_us;
};

// A handler of the wire contract that is told which attempt the call is.
class ThriftHandler {
 public:
  virtual ~ThriftHandler() = default;

  // The attempt of the next call; valid until that call returns.
  virtual void Begin(Attempt& attempt) = 0;

  virtual wire::IdServiceIf& service() = 0;
};

enum class ThriftCoding : bool { kBinary, kCompact };

// Thrift in frames, processed by the generated code. A frame that is too large, or that the coding
// cannot read, closes the connection; an unknown method is answered with an error.
// `limits` and `handler` must outlive it; one IO thread uses all of them.
std::unique_ptr<Protocol> MakeThriftProtocol(ThriftCoding coding, const Limits& limits,
                                             ThriftHandler& handler);

}  // namespace firn::front
