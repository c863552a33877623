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

// The request to send, and how many at the same time.
struct LoadPlan {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int connections = 1;
  int depth = 1;               // requests in flight on each connection
  int64_t warmup_ms = 200;     // answers in this time do not count
  int64_t measure_ms = 1000;   // no new requests are sent after it
  int64_t patience_ms = 5000;  // fails if no answer arrives for this time
  bool keep_ids = false;       // store every id, to detect duplicates
  bool dial_anew = false;      // a new connection for each request; requires depth 1
  std::optional<LoadTls> tls{};
};

struct LoadReport {
  uint64_t answers = 0;      // within the measured time
  uint64_t refused = 0;      // how many of the answers are refusals
  double seconds = 0;        // the measured time
  Histogram latency;         // from the sending of a request's batch, or from the dialling of its
                             // connection, to the read of its answer
  std::vector<int64_t> ids;  // of every answer, also during warm-up, if the plan keeps them

  double rate() const { return seconds > 0 ? static_cast<double>(answers) / seconds : 0; }
};

// Closed-loop load from one thread with one epoll. Each connection keeps `depth` requests in
// flight: for each answer it sends a request, and for all answers of one read in one send. All
// dialects use the same loop, so that figures of two servers differ only because of the servers.
//
// Blocks until the plan is done. `now_ns` reads a monotonic clock. Fails if it cannot connect, if a
// connection breaks, or if nothing arrives within the plan's patience.
Result<LoadReport> RunLoad(const LoadPlan& plan, const Dialect& dialect, int64_t (*now_ns)());

}  // namespace firn
