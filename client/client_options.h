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

// The reaction of a call to a server that does not answer, or refuses while another may accept.
enum class FailureMode : uint8_t {
  kFailover,  // fail over to another server
  kFailfast   // return the failure
};

// Options of TLS connections. The files are in PEM form. New connections use changed
// files.
struct TlsOptions {
  std::string ca{};    // trusted authorities; empty: this machine's
  std::string cert{};  // client certificate for servers that require one, with its chain;
                       // empty: none
  std::string key{};   // its private key, which no other user may read
  std::string name{};  // name that all servers' certificates must contain as a subjectAltName;
                       // empty: the host, a name or an IP address, of each server's address
};

// The options of a client, which do not change. Client::status() names fields that are out of
// range.
struct ClientOptions {
  // list://host:port,host:port, or any text that `open_source` accepts.
  std::string servers{};
  SourceOpener open_source{};  // zk:// and dir://: from firn::client_registry
  // UUID of the cluster. Empty: that of the source, or of the first server that answers.
  std::string cluster_uuid{};

  // Use TLS for all servers. Absent: use TLS, with this machine's authorities, for the servers that
  // the list marks so.
  std::optional<TlsOptions> tls{};

  std::optional<uint32_t> rack{};  // use servers of this rack while one is healthy
  // Maximum number of servers that this client uses, so that each has few connections; 0: all. With
  // 1, all calls use one server while it is healthy, and return to it when it is healthy again.
  int servers_max = 16;
  FailureMode on_failure = FailureMode::kFailover;

  Milliseconds deadline{200};      // maximum time of a whole call, unless the call sets it
  Milliseconds attempt_limit{80};  // maximum time of one attempt, connecting included
  int attempts_max = 3;            // maximum number of servers per call, each tried once

  // Maximum connections to each server for all blocking calls, and as many for asynchronous ones.
  // Blocking calls for one tag that start together share one.
  int connections = 2;

  // Prefetches ids, so that GetId answers from memory. Empty: no prefetching.
  LocalSupplyMaker local_ranges{};

  // Runs each function that it receives once, at any time. Set it if callbacks block or take long.
  // The client's IO thread calls it, so it must not block itself. Functions that it has not yet run
  // when the client is destroyed belong to the program. If it throws, the callback runs on the IO
  // thread, unless the program has run it already. Empty: callbacks run on the IO thread, one after
  // another.
  std::function<void(std::function<void()>)> callbacks{};

  // Receives events about servers and lists; see client_events.h. Empty: no events.
  EventHook on_event{};
};

// Options of one call. Absent fields are as in ClientOptions.
struct CallOptions {
  // Limited to 0 to 1 hour.
  std::optional<Milliseconds> deadline{};
  // Filled before the call returns, or before its callback runs; must live until then.
  struct CallReport* report = nullptr;
};

}  // namespace firn
