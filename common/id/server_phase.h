#pragma once

#include <cstdint>
#include <string_view>

namespace firn {

// How a server stands with those who might ask it for ids.
enum class ServerPhase : uint8_t {
  kNotReady,  // it could not issue a snowflake id now; segment tags may be served all the same
  kReady,
  kOffline,   // taken out by an operator: still serves, clients are told to go elsewhere
  kDraining,  // on its way out
};

// "NOT_READY" and so on, as the wire contract spells it. Where servers announce themselves, and in
// files, other words are used; they stand with what reads them.
std::string_view PhaseName(ServerPhase phase);

}  // namespace firn
