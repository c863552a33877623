#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn::front {

// What is known of the whole cluster about one thing.
struct ClusterWord {
  std::shared_ptr<const std::string> json{};  // one object; null: nothing is known (yet)
  Milliseconds age{0};                        // since it was read
  // Why there is nothing, or nothing newer. Ok: it is new, or on its way.
  Status trouble{};
};

// What a server's admin side can say of the whole cluster. That takes reads of the registry, so an
// answer may come later: whoever has asked in vain asks again. Thread-safe; never blocks.
class ClusterView {
 public:
  virtual ~ClusterView() = default;

  // Its machine ids, servers, and everything that is wrong.
  virtual ClusterWord Audit() = 0;
  // All its tags.
  virtual ClusterWord Tags() = 0;
  // Which process issued an id. kInvalid: none of the cluster's.
  virtual ClusterWord Who(int64_t id) = 0;
};

}  // namespace firn::front
