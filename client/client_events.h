#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

namespace firn {

// An event about servers, for the program's log. The library itself logs nothing.
struct ClientEvent {
  enum class Kind : uint8_t {
    kList,          // a list arrived; detail: number of servers, and whether from a file
    kUnhealthy,     // ejected after failures; detail: for how long, and why
    kHealthy,       // answers again
    kQuarantined,   // is not this cluster's IdService, or violates the protocol
    kDraining,      // reports that it is stopping
    kNoServer,      // a call ended because no server is known or healthy
    kForked,        // this is a child of fork(): connections and local ranges were left behind
    kNotPrefetched  // servers refuse runs of a tag: calls get its ids from servers; detail: why
  };
  Kind kind;
  std::string server;  // host:port, if the event is about one server
  std::string detail;  // a sentence
};
std::string_view EventName(ClientEvent::Kind kind);

// Called on the thread that noticed the event, also on several at once; must return soon, since
// ids and renewals of leases wait for it; and must not call the client.
using EventHook = std::function<void(const ClientEvent&)>;

}  // namespace firn
