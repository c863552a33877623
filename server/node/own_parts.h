#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "server/node/extensions.h"

namespace firn {

// Makes a store and checks its name. Returns an error if the maker throws.
Result<std::unique_ptr<RangeStore>> MakeOwnStore(const std::string& name,
                                                 const Extensions::StoreMaker& maker);

// Starts and stops a program's own strategies. Stop may run on another thread than the makers, once
// no more strategies are made.
class OwnStrategies {
 public:
  // Wraps `maker` so that each strategy is started once, even if it serves several tags. This must
  // outlive the result. Returns null if `maker` is null.
  Extensions::StrategyMaker Started(Extensions::StrategyMaker maker);

  void Stop();

 private:
  Status Start(const std::shared_ptr<Strategy>& strategy);

  std::vector<std::shared_ptr<Strategy>> started_;
};

}  // namespace firn
