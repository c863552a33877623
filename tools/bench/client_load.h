#pragma once

#include <cstdint>
#include <string>

#include "client/client.h"
#include "common/base/status.h"
#include "tools/bench/load_record.h"

namespace firn {

// A load for the client library: what to request, and how many calls at once.
struct ClientLoadPlan {
  std::string tag;
  int threads = 1;          // threads that call and wait
  int depth = 0;            // asynchronous calls in flight, instead of threads
  int32_t batch = 1;        // ids per call
  double rate = 0;          // calls per second of all threads; 0: unlimited
  int64_t warmup_ms = 200;  // time before the measurement begins
  int64_t measure_ms = 1000;
  size_t ids_max = 0;  // ids that are kept and checked for duplicates
};

struct ClientLoadReport {
  LoadRecord record{0};
  double seconds = 0;  // duration of the measurement

  double calls_rate() const { return static_cast<double>(record.calls()) / seconds; }
  double ids_rate() const { return static_cast<double>(record.ids()) / seconds; }
};

// Generates load through the client library: threads that call and wait, or asynchronous calls in
// flight. With a rate, a call's latency counts from the time at which it was due, so a stall shows
// in every call that it delays. Blocks until all calls are answered. `now_ns` must read a monotonic
// clock. kInvalid if the plan contradicts itself.
Result<ClientLoadReport> RunClientLoad(Client& client, const ClientLoadPlan& plan,
                                       int64_t (*now_ns)());

// Reads a monotonic clock, in nanoseconds.
int64_t SteadyNs();

}  // namespace firn
