#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn::front {

// A report about the whole cluster.
struct ClusterReading {
  std::shared_ptr<const std::string> json{};  // one object; null: not known (yet)
  Milliseconds age{0};                        // since it was read
  // Why there is no report, or no newer one. Ok: it is up to date, or being read.
  Status trouble{};
};

// An admin-side view of the whole cluster. It reads the registry, so an answer may take time: a
// caller without one asks again later. Thread-safe; never blocks.
class ClusterView {
 public:
  virtual ~ClusterView() = default;

  // Machine ids, servers, and all faults.
  virtual ClusterReading Audit() = 0;
  // All tags.
  virtual ClusterReading Tags() = 0;
  // The Dubbo consumers that are registered in ZooKeeper; empty with other registries.
  virtual ClusterReading Consumers() = 0;
  // The process that issued an id. kInvalid if no process of the cluster did.
  virtual ClusterReading Who(int64_t id) = 0;
};

}  // namespace firn::front
