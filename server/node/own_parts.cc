#include "server/node/own_parts.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "common/base/cat.h"
#include "common/log/log.h"
#include "common/tag/tag_fields.h"

namespace firn {
namespace {

Result<std::unique_ptr<RangeStore>> Made(const Extensions::StoreMaker& maker) {
  if (maker == nullptr) return Invalid("its maker is null");
  try {
    std::unique_ptr<RangeStore> store = maker();
    if (store == nullptr) return Invalid("its maker returned null");
    return store;
  } catch (const std::exception& e) {
    return Invalid(Cat("its maker threw: ", e.what()));
  } catch (...) {
    return Invalid("its maker threw");
  }
}

}  // namespace

Result<std::unique_ptr<RangeStore>> MakeOwnStore(const std::string& name,
                                                 const Extensions::StoreMaker& maker) {
  if (!IsTagWord(name)) {
    return Invalid("a store's name begins with a-z and contains only a-z, 0-9, '_' and '-'");
  }
  FIRN_ASSIGN(std::unique_ptr<RangeStore> store, Made(maker));
  if (store->name() != name) {
    return Invalid(Cat("its name() returns '", store->name(), "'; use one name"));
  }
  return store;
}

Extensions::StrategyMaker OwnStrategies::Started(Extensions::StrategyMaker maker) {
  if (maker == nullptr) return nullptr;
  return [this,
          maker = std::move(maker)](const TagDefinition& tag) -> Result<std::shared_ptr<Strategy>> {
    FIRN_ASSIGN(std::shared_ptr<Strategy> strategy, maker(tag));
    if (strategy != nullptr) FIRN_TRY(Start(strategy));
    return strategy;
  };
}

Status OwnStrategies::Start(const std::shared_ptr<Strategy>& strategy) {
  if (std::find(started_.begin(), started_.end(), strategy) != started_.end()) return {};
  FIRN_TRY(strategy->Start());
  started_.push_back(strategy);
  return {};
}

void OwnStrategies::Stop() {
  for (const auto& strategy : std::exchange(started_, {})) {
    try {
      strategy->Stop();
    } catch (...) {
      LogError("plugin_failed") << "the strategy " << strategy->name()
                                << " threw when it was stopped";
    }
  }
}

}  // namespace firn
