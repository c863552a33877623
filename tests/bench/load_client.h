#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tests/bench/dialect.h"
#include "tests/bench/load_link.h"
#include "tools/bench/histogram.h"

namespace firn {

// The request to send, and how many at once.
struct LoadPlan {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int connections = 1;
  int depth = 1;               // requests in flight on each connection
  int64_t warmup_ms = 200;     // answers in this time are not measured
  int64_t measure_ms = 1000;   // no new requests after it
  int64_t patience_ms = 5000;  // no answer at all for so long: failure
  bool keep_ids = false;       // remember every id, to look for duplicates
  bool dial_anew = false;      // a new connection for each request; depth is 1 then
  std::optional<LoadTls> tls{};
};

struct LoadReport {
  uint64_t answers = 0;      // within the measured time
  uint64_t refused = 0;      // of those
  double seconds = 0;        // what was measured
  Histogram latency;         // from the send of a request's batch, or from the dialling of its
                             // connection, to the read of its answer
  std::vector<int64_t> ids;  // of every answer, warm-up included, when the plan keeps them

  double rate() const { return seconds > 0 ? static_cast<double>(answers) / seconds : 0; }
};

// Closed-loop load from one thread on one epoll: each connection keeps `depth` requests in flight
// and sends one for each answer, all answers of a read in one send. The same loop serves every
// dialect, so that two servers' figures differ only because of the servers.
//
// Blocks until the plan is done. `now_ns` reads a clock that never goes back. Fails when it cannot
// connect, when a connection breaks, and when nothing arrives within the plan's patience.
Result<LoadReport> RunLoad(const LoadPlan& plan, const Dialect& dialect, int64_t (*now_ns)());

}  // namespace firn
