#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/id/server_phase.h"

namespace firn::front {

// One server of the cluster, as clients see it.
struct ListedServer {
  std::string address;  // host:port
  uint32_t rack = 0;
  int weight = 100;    // share of the calls: 100 is usual, 0 is none
  bool online = true;  // false: an operator has taken it offline
  ServerPhase phase = ServerPhase::kReady;
  bool tls = false;  // calls to it must use TLS

  friend bool operator==(const ListedServer&, const ListedServer&) = default;
};

// All servers. Immutable, so IO threads share it without a lock, and each encodes it once.
struct ListedServers {
  std::string cluster_uuid;
  std::string application;
  int64_t version = 0;  // greater than 0
  std::vector<ListedServer> servers{};

  friend bool operator==(const ListedServers&, const ListedServers&) = default;
};

struct ShownServers {
  std::shared_ptr<const ListedServers> list{};  // null: not known yet
  Milliseconds age{0};                          // how long ago the registry last confirmed it
};

}  // namespace firn::front
