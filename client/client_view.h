#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/server_source.h"
#include "common/base/units.h"

namespace firn {

// Counters of a client since it was created. They never decrease.
struct ClientCounters {
  uint64_t calls = 0;           // calls that used a server; prefetched ids need none
  uint64_t failed = 0;          // of these, calls that ended with an error
  uint64_t invalid = 0;         // calls that were not started, because every server would refuse
  uint64_t attempts = 0;        // requests that were sent to servers
  uint64_t retries = 0;         // attempts after a call's first one that used the retry budget
  uint64_t retries_denied = 0;  // retries that the retry budget did not permit
  uint64_t free_retries = 0;    // attempts made because another call timed out on the same
                                // connection; these do not use the retry budget
  uint64_t connects = 0;        // connections that were opened
  uint64_t connects_failed = 0;
  uint64_t connects_deferred = 0;  // connections that were not opened, because of the backoff
  uint64_t own_faults = 0;  // of the failed ones, those without a free descriptor or memory here
  uint64_t timeouts = 0;    // attempts without an answer in time
  uint64_t broken = 0;      // attempts with an invalid answer, or at a wrong service
  uint64_t refused = 0;     // attempts that the server refused
  uint64_t queued = 0;  // attempts that timed out while their connection delivered other answers:
                        // the connection stays open, and the calls ask another server
  uint64_t late_answers = 0;  // answers that arrived after their call had ended
  uint64_t lists = 0;         // lists that the source has reported
  uint64_t ejections = 0;     // times that a server was ejected
  uint64_t quarantines = 0;   // times that a server was quarantined, or found to be foreign
  uint64_t panics = 0;        // times that fewer than half of the servers were healthy
  uint64_t probes = 0;        // probes that were sent
  uint64_t probes_lost = 0;   // of those, without an answer
  uint64_t lookups = 0;       // times that a server's name was resolved
  uint64_t local_taken = 0;   // this and the next three: see LocalSupply::Counts
  uint64_t local_missed = 0;
  uint64_t local_awaited = 0;
  uint64_t local_dropped = 0;
};

// Whether the client calls a server, and if not, why.
enum class ServerHealth : uint8_t {
  kHealthy,
  kFailing,     // failed too often, but half of the servers are out already; called after kHealthy
  kEjected,     // ejected, or reported that it cannot serve now; called after kFailing
  kDisabled,    // an operator has taken it offline
  kDraining,    // shutting down
  kQuarantined  // violated the protocol: called only while fewer than half of the servers are
                // healthy; or is not an IdService of this cluster: never called
};
std::string_view HealthName(ServerHealth health);

// One server as this client sees it.
struct SeenServer {
  KnownServer known{};
  ServerHealth health = ServerHealth::kHealthy;
  std::string why{};                     // the reason, unless kHealthy
  std::chrono::microseconds latency{0};  // of recent answers, weighted to slow ones; 0: none
  int in_flight = 0;
  uint64_t answered = 0;  // attempts, refusals included
  uint64_t failed = 0;    // attempts
};

// All that a client knows of its cluster.
struct ClusterView {
  std::vector<SeenServer> servers{};  // in the order of their addresses
  ClusterIdentity cluster{};
  bool from_cache = false;
};

}  // namespace firn
