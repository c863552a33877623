#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace firn {

// Something about servers that somebody may want to log. The library itself logs nothing.
struct ClientEvent {
  enum class Kind : uint8_t {
    kList,         // a list came; detail: how many servers, whether from a file
    kServerOut,    // failed too often and rests; detail: for how long, and why
    kServerBack,   // answered again
    kQuarantined,  // is not this cluster's IdService, or speaks nonsense
    kDraining,     // says that it is on its way out
    kNoServer,     // a call ended because no server is known or fit
    kForked        // this is a child of fork(): connections and local ranges were left behind
  };
  Kind kind;
  std::string server;  // host:port, where it is about one
  std::string detail;  // a sentence
};
std::string_view EventName(ClientEvent::Kind kind);

// Called on whichever thread noticed, also on several at a time; must return soon, and must not
// call the client.
using EventHook = std::function<void(const ClientEvent&)>;

}  // namespace firn
