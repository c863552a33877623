#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/json/json.h"
#include "registry/seam/blocking_coordinator.h"

namespace firn {

// A program that uses an interface, as it has registered itself.
struct DubboConsumer {
  std::string interface;
  std::string host;
  std::string application;  // empty: not given
  std::string pid;
  std::string version;  // of Dubbo; empty: not given

  friend bool operator==(const DubboConsumer&, const DubboConsumer&) = default;
};

// Reads the name of a node below an interface's consumers. kInvalid if it is not a consumer's
// URL. Its texts are untrusted, and printable.
Result<DubboConsumer> ParseDubboConsumer(std::string_view interface, std::string_view node_name);

// Reads the consumers of both interfaces, in the order of interfaces, then of nodes. Leaves out
// other names. `ensemble` is at ZooKeeper's root.
Result<std::vector<DubboConsumer>> ReadDubboConsumers(BlockingCoordinator& ensemble);

// Returns them as an array, for scripts and for the console.
Json DubboConsumersJson(const std::vector<DubboConsumer>& consumers);

}  // namespace firn
