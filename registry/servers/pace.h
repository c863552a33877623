#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// What servers have done of late, each in a node of its own:
//
//   /firn.IdService/paces/<host:port>     ephemeral; written every few seconds while somebody looks
//   /firn.IdService/paces/wanted          ephemeral, of whoever looks; there for all who do
//
// They are told for people, and nothing is decided by them. They stand apart from the providers,
// which every client reads again after each change. A word that is older than the sign was for
// those who looked before.
inline constexpr std::string_view kPacesPath = "/firn.IdService/paces";
inline constexpr std::string_view kPacesWantedPath = "/firn.IdService/paces/wanted";

struct ServerPace {
  Milliseconds over{0};  // in so much time, more than none, it did this:
  int64_t ids = 0;       // issued
  int64_t calls = 0;     // answered, those that it refused among them
  int64_t refused = 0;
  std::optional<int64_t> p99_us{};  // 99 of 100 requests took less; empty: there were none

  friend bool operator==(const ServerPace&, const ServerPace&) = default;
};

std::string PacePath(std::string_view address);

// JSON, one object.
std::string FormatPace(const ServerPace& pace);
Result<ServerPace> ParsePace(std::string_view json);

}  // namespace firn
