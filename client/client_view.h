#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include "client/server_source.h"
#include "common/base/units.h"

namespace firn {

// What a client has done since it was made; each number only grows.
struct ClientCounters {
  uint64_t calls = 0;           // that were begun, without those that a local range answered
  uint64_t failed = 0;          // of those, answered with an error
  uint64_t invalid = 0;         // not begun: what they asked for no server can have
  uint64_t attempts = 0;        // requests that were sent to servers
  uint64_t retries = 0;         // servers that a call asked beside its first one, hedges included;
                                // not those it went on to free of the retry budget
  uint64_t retries_denied = 0;  // times that the retry budget had nothing left for one more
  uint64_t moves = 0;           // of the attempts, those that another call's time-out on the same
                                // connection had made necessary: free of the retry budget
  uint64_t hedges = 0;          // of the retries, those begun because the first server was slow
  uint64_t connects = 0;        // connections that were opened
  uint64_t connects_failed = 0;
  uint64_t put_off = 0;     // times that none was begun, as one to that server had just failed
  uint64_t own_faults = 0;  // of the failed ones, those for want of a descriptor or of memory here
  uint64_t timeouts = 0;    // attempts without an answer in time
  uint64_t broken = 0;      // attempts answered with nonsense, or by a wrong service
  uint64_t refused = 0;     // attempts answered with a typed "no"
  uint64_t in_line = 0;  // attempts without an answer in time where others were given theirs: they
                         // keep their places, and the calls ask elsewhere
  uint64_t unclaimed = 0;    // answers that found their call ended
  uint64_t lists = 0;        // lists that the source has told
  uint64_t rests = 0;        // times that a server was left to rest, having failed too often
  uint64_t quarantines = 0;  // times that one was left alone for nonsense, or as another cluster's
  uint64_t panics = 0;       // times that fewer than half of the servers were left fit
  uint64_t looks = 0;        // statuses that were asked for in the background
  uint64_t looks_lost = 0;   // of those, without an answer
  uint64_t lookups = 0;      // times that a server's name was looked up
  uint64_t local_taken = 0;  // as LocalSupply::Counts
  uint64_t local_missed = 0;
  uint64_t local_awaited = 0;
  uint64_t local_dropped = 0;
};

// Whether, and why not, a server is asked.
enum class ServerFitness : uint8_t {
  kFit,
  kFailing,     // failed too often, where half of the servers are out already; asked after fit ones
  kResting,     // failed too often, or said that it cannot for now; asked when no fit one is left
  kDisabled,    // an operator has taken it out
  kDraining,    // shutting down
  kQuarantined  // speaks nonsense: asked only while fewer than half of the servers are fit; or is
                // not this cluster's IdService: never asked
};
std::string_view FitnessName(ServerFitness fitness);

// One server as this client sees it.
struct SeenServer {
  KnownServer known{};
  ServerFitness fitness = ServerFitness::kFit;
  std::string why{};                     // a sentence, unless fit
  std::chrono::microseconds latency{0};  // of its answers lately, leaning to the slow ones; 0: none
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
