#pragma once

#include <cstdint>
#include <string>

#include "client/client.h"
#include "common/base/status.h"
#include "tools/bench/load_record.h"

namespace firn {

// What to ask for through the client, and how much of it at once.
struct ClientLoadPlan {
  std::string tag;
  int threads = 1;          // that call and wait
  int depth = 0;            // instead of threads: asynchronous calls in flight
  int32_t batch = 1;        // ids of a call
  double rate = 0;          // calls a second of all threads; 0: each as fast as it is answered
  int64_t warmup_ms = 200;  // calls that begin in this time are not measured
  int64_t measure_ms = 1000;
  size_t ids_max = 0;  // that are kept, to look for duplicates
};

struct ClientLoadReport {
  LoadRecord record{0};
  double seconds = 0;  // what was measured

  double calls_rate() const { return static_cast<double>(record.calls()) / seconds; }
  double ids_rate() const { return static_cast<double>(record.ids()) / seconds; }
};

// Load over the real client: threads that call and wait, or asynchronous calls in flight. At a
// rate, a call's time counts from the moment at which it was due, so that a stall shows in every
// call that it delays. Blocks until the plan is done; every call is answered before it returns.
// `now_ns` reads a clock that never goes back. kInvalid: the plan contradicts itself.
Result<ClientLoadReport> RunClientLoad(Client& client, const ClientLoadPlan& plan,
                                       int64_t (*now_ns)());

// A clock that never goes back, in nanoseconds.
int64_t SteadyNs();

}  // namespace firn
