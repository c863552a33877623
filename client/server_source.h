#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/server_phase.h"

namespace firn {

// A server in a source's list.
struct KnownServer {
  std::string address;  // host:port; an IPv6 host has brackets
  uint32_t rack = 0;
  int weight = 100;       // share of calls relative to other weights; 0 counts as disabled
  bool disabled = false;  // set offline by an operator
  ServerPhase phase = ServerPhase::kReady;  // as the server reports
  bool tls = false;                         // the server accepts only TLS
  // Identifies the process: another value at the same address is a new process with unknown health.
  // Empty: the source does not know.
  std::string incarnation{};

  friend bool operator==(const KnownServer&, const KnownServer&) = default;
};

// The cluster of the servers. Empty fields are unknown; the first server that answers determines
// them.
struct ClusterIdentity {
  std::string uuid;
  std::string name;
  std::string layout;

  friend bool operator==(const ClusterIdentity&, const ClusterIdentity&) = default;
};

// A source's list of servers at one time.
struct ServerList {
  std::vector<KnownServer> servers;  // unique addresses; servers beyond kServersMax are ignored
  ClusterIdentity cluster{};
  bool from_cache = false;  // read from a file, because the registry does not answer
  bool fixed = false;       // the list never changes

  static constexpr size_t kServersMax = 1000;

  friend bool operator==(const ServerList&, const ServerList&) = default;
};

// A server's answer to `servers()` of the wire contract: its list of all servers.
struct ToldServers {
  int64_t version = 0;               // 0: it has no list
  std::optional<ServerList> list{};  // empty: the list of the requested version is current
  Milliseconds age{0};               // time since the registry confirmed it
  Milliseconds ask_again{0};
};

// The source of a client's lists of servers. Owned by the client, which calls Start and Stop once
// each, in this order.
//
// Sharp edge: a child of fork() neither stops nor destroys the inherited object, because its
// threads do not exist there. The child's client opens its own source.
class ServerSource {
 public:
  using Listener = std::function<void(const ServerList&)>;

  virtual ~ServerSource() = default;

  // Starts to report lists, inside this call or on the source's own thread, one at a time. Reports
  // a list only if it differs from the last one, or if servers answer again after none did. The
  // client uses an empty list, so the source decides whether to report one. kInvalid if the
  // source's text is invalid.
  virtual Status Start(Listener on_list) = 0;

  // Tells the source that a call failed, so that it fetches a newer list soon. Any thread; no wait.
  virtual void Hurry() {}

  // After its return the listener is neither running nor called again.
  virtual void Stop() = 0;
};

// Creates a source from the text of ClientOptions::servers. kInvalid names the text's fault.
using SourceOpener =
    std::function<Result<std::unique_ptr<ServerSource>>(const std::string& servers)>;

}  // namespace firn
