#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "server/node/extensions.h"

namespace firn {

// Made, and called what it is registered as; whatever the maker throws is an error.
Result<std::unique_ptr<RangeStore>> MakeOwnStore(const std::string& name,
                                                 const Extensions::StoreMaker& maker);

// Starts and ends the strategies of a program's own. Made on one thread, and stopped on another
// once nothing is made any more.
class OwnStrategies {
 public:
  // A maker whose strategies are started, each once, however many tags it serves. This must outlive
  // it. Null for null.
  Extensions::StrategyMaker Started(Extensions::StrategyMaker maker);

  void Stop();

 private:
  Status Start(const std::shared_ptr<Strategy>& strategy);

  std::vector<std::shared_ptr<Strategy>> started_;
};

}  // namespace firn
