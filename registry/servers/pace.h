#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// The recent rates of servers, each in a separate node:
//
//   /firn.IdService/paces/<host:port>     ephemeral; written every 5 s while a viewer exists
//   /firn.IdService/paces/wanted          ephemeral; created by a viewer, shared by all viewers
//
// They are shown to people; no decision depends on them. They are separate from the providers,
// which every client reads again after each change. A rate that is older than `wanted` is stale: it
// was written for earlier viewers.
inline constexpr std::string_view kPacesPath = "/firn.IdService/paces";
inline constexpr std::string_view kPacesWantedPath = "/firn.IdService/paces/wanted";

// A server's activity in the past 15 minutes, one sample for each period of 10 s.
struct PaceHistory {
  struct Sample {
    int64_t ids = 0;      // issued
    int64_t refused = 0;  // calls
    int64_t p99_us = 0;   // 99th percentile of the latency; 0: no requests

    friend bool operator==(const Sample&, const Sample&) = default;
  };
  static constexpr Milliseconds kEvery{10'000};
  static constexpr size_t kSamplesMax = 90;

  Milliseconds age{0};            // since the end of the newest sample; negative before that end
  std::vector<Sample> samples{};  // oldest first

  friend bool operator==(const PaceHistory&, const PaceHistory&) = default;
};

struct ServerPace {
  Milliseconds over{0};  // length of the period, more than 0
  int64_t ids = 0;       // issued
  int64_t calls = 0;     // answered, including the refused ones
  int64_t refused = 0;
  std::optional<int64_t> p99_us{};  // 99th percentile of the latency; empty: no requests
  PaceHistory history{};
  std::map<std::string, int64_t> connections{};  // open, by protocol
  std::string console{};                         // URL of the server's console; empty: unknown

  friend bool operator==(const ServerPace&, const ServerPace&) = default;
};

std::string PacePath(std::string_view address);

// JSON, one object, of at most kPaceBytesMax bytes.
inline constexpr size_t kPaceBytesMax = 4096;
std::string FormatPace(const ServerPace& pace);
Result<ServerPace> ParsePace(std::string_view json);

// Returns {"every_ms","age_ms","ids":[...],"refused":[...],"p99_us":[...]}, oldest sample first.
std::string FormatHistory(const PaceHistory& history);

}  // namespace firn
