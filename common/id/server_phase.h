#pragma once

#include <cstdint>
#include <string_view>

namespace firn {

// Whether clients should use a server.
enum class ServerPhase : uint8_t {
  kNotReady,  // it cannot issue snowflake ids now; it may still serve segment tags
  kReady,
  kOffline,   // set offline by an operator: it still serves, but asks clients to use other servers
  kDraining,  // stopping
};

// "NOT_READY" and so on, as in the wire contract. Servers' reports in the registry, and files, use
// other words, which their parsers define.
std::string_view PhaseName(ServerPhase phase);

}  // namespace firn
