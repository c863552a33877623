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

// One server as a source knows it.
struct KnownServer {
  std::string address;  // host:port; an IPv6 host has brackets
  uint32_t rack = 0;
  int weight = 100;       // share of the calls, beside the others' weights; 0 counts as disabled
  bool disabled = false;  // an operator has taken it out
  ServerPhase phase = ServerPhase::kReady;  // as it says itself
  bool tls = false;                         // it speaks TLS and nothing else
  // Another one at the same address is another process, of which nothing is known yet. Empty: the
  // source cannot tell.
  std::string incarnation{};

  friend bool operator==(const KnownServer&, const KnownServer&) = default;
};

// Whose servers they are. Empty fields are not known; then the first server that answers settles
// them.
struct ClusterIdentity {
  std::string uuid;
  std::string name;
  std::string layout;

  friend bool operator==(const ClusterIdentity&, const ClusterIdentity&) = default;
};

// All servers that a source knows at one moment.
struct ServerList {
  std::vector<KnownServer> servers;  // each address once; those beyond kServersMax are not used
  ClusterIdentity cluster{};
  bool from_cache = false;  // read from a file, because the directory does not answer
  bool fixed = false;       // no other list will ever come

  static constexpr size_t kServersMax = 1000;

  friend bool operator==(const ServerList&, const ServerList&) = default;
};

// What one server tells of all (`servers()` of the wire contract).
struct ToldServers {
  int64_t version = 0;               // 0: it knows none
  std::optional<ServerList> list{};  // empty: still that of the version it was asked with
  Milliseconds age{0};               // how long ago the registry confirmed it
  Milliseconds ask_again{0};
};

// Where a client learns which servers there are. Owned by the client, which calls Start and Stop
// once each, in this order.
//
// Sharp edge: in a child of fork() the object is left behind as it is: neither stopped nor
// destroyed, for its threads do not exist there. The child's client opens a source of its own.
class ServerSource {
 public:
  using Listener = std::function<void(const ServerList&)>;

  virtual ~ServerSource() = default;

  // Begins to tell lists: inside this call or on the source's own thread, never two at a time, and
  // each only when it differs from the one before, or when servers answer again of which none did.
  // An empty list is believed: whether to tell one is the source's decision. kInvalid when what it
  // was made from cannot be used.
  virtual Status Start(Listener on_list) = 0;

  // A call met trouble: a newer list, if there is one, is wanted soon. Any thread; does not wait.
  virtual void Hurry() {}

  // Tells nothing more; when it returns, no call of the listener is under way.
  virtual void Stop() = 0;
};

// Makes a source from what ClientOptions::servers says. kInvalid names what is amiss with it.
using SourceOpener =
    std::function<Result<std::unique_ptr<ServerSource>>(const std::string& servers)>;

}  // namespace firn
