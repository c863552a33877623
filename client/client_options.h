#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "client/client_events.h"
#include "client/local_supply.h"
#include "client/server_source.h"
#include "common/base/units.h"

namespace firn {

// How the next server is chosen among those that are fit to be asked.
enum class Balancing : uint8_t {
  kP2c,         // of two at random the one with the lower latency x calls in flight / weight
  kRoundRobin,  // in turn, as often as their weights say
  kRandom,      // by lot, weighted
  kSticky       // one and the same until it is no longer fit
};

// What happens when a server does not answer, or refuses in a way that another may not.
enum class FailureMode : uint8_t {
  kFailover,  // another server is asked
  kFailfast   // the caller is told
};

// How servers are spoken to that speak TLS. Files in PEM form; they are read again when they have
// changed, for connections from then on.
struct TlsOptions {
  std::string ca{};    // the authorities that are believed; empty: this machine's
  std::string cert{};  // the certificate that is shown to servers that want one, with those that
                       // lead to its authority; empty: none
  std::string key{};   // its private key, which nobody else may read
  std::string name{};  // what all servers' certificates must be for, by their subjectAltName;
                       // empty: each for the host, a name or an IP address, of its own address
};

// Everything about a client that is decided once. Fields out of range are named by
// Client::status().
struct ClientOptions {
  // list://host:port,host:port; with an opener whatever it understands.
  std::string servers{};
  SourceOpener open_source{};  // zk:// and dir://: from firn::client_registry
  // The cluster that it must be. Empty: as the source says, or the first server that answers.
  std::string cluster_uuid{};

  // All servers are spoken to by TLS. Absent: those of which the list says that they speak it are,
  // with this machine's authorities.
  std::optional<TlsOptions> tls{};

  Balancing balancing = Balancing::kP2c;
  std::optional<uint32_t> rack{};  // ask servers of this rack while one is fit
  // Keep to so many servers of a large cluster, so that each has few connections; 0: to all.
  int servers_max = 16;
  FailureMode on_failure = FailureMode::kFailover;

  Milliseconds deadline{200};      // of a whole call, unless the call says otherwise
  Milliseconds attempt_limit{80};  // of one server's answer, connecting included
  int attempts_max = 3;            // servers that a call may reach, each once
  // Ask a second server when the first has not answered for so long; the first answer wins and the
  // other one's ids are lost.
  std::optional<Milliseconds> hedge_after{};

  // To each server at most, shared by all blocking calls; asynchronous calls have as many again.
  int connections = 2;

  // Runs that are fetched ahead, so that GetId answers from memory. Empty: none.
  LocalSupplyMaker local_ranges{};

  // Runs what it is given, once and at a time of its own: where callbacks are to run that wait, or
  // take long. It is handed each by the client's IO thread and must not wait itself; what it has
  // not run yet is the program's when the client is gone. Empty: they run on that thread, one after
  // the other.
  std::function<void(std::function<void()>)> callbacks{};

  // Told what happens to servers and lists; see client_events.h. Empty: nobody is told.
  EventHook on_event{};
};

// What one call may ask for. A field that is absent is as in ClientOptions.
struct CallOptions {
  // More than an hour counts as one, less than nothing as nothing.
  std::optional<Milliseconds> deadline{};
  // Filled before the call returns, or before its callback runs; must live until then.
  struct CallReport* report = nullptr;
};

}  // namespace firn
