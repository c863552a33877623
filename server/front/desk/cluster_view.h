#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn::front {

// What is known of the whole cluster about one subject.
struct ClusterReading {
  std::shared_ptr<const std::string> json{};  // one object; null: nothing is known (yet)
  Milliseconds age{0};                        // since it was read
  // Why there is nothing, or nothing newer. Ok: it is new, or being read.
  Status trouble{};
};

// A server's admin-side view of the whole cluster. It requires reads of the registry, so an answer
// may come later: a caller without an answer asks again. Thread-safe; never blocks.
class ClusterView {
 public:
  virtual ~ClusterView() = default;

  // Its machine ids, servers, and all faults.
  virtual ClusterReading Audit() = 0;
  // All its tags.
  virtual ClusterReading Tags() = 0;
  // The Dubbo consumers that are registered in the cluster's ZooKeeper; none with another registry.
  virtual ClusterReading Consumers() = 0;
  // The process that issued an id. kInvalid: none of the cluster's.
  virtual ClusterReading Who(int64_t id) = 0;
};

}  // namespace firn::front
