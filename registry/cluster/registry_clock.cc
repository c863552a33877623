#include "registry/cluster/registry_clock.h"

#include "registry/cluster/slot.h"

namespace firn {

Result<WallMs> ReadRegistryClock(BlockingCoordinator& registry) {
  const auto set = [&registry] {
    return registry.Multi({Write::Set(kClockPath, "", Write::kAnyVersion)});
  };
  WriteOutcome told = set();
  if (told.status.code() == Code::kNotFound) {
    const WriteOutcome made =
        registry.Multi({Write::Create(kClockPath, "", Lifetime::kPersistent)});
    if (made.status.ok() || made.status.code() == Code::kConflict) told = set();
  }
  if (!told.status.ok()) return told.status.WithContext("reading the registry's clock");
  return told.stats.front().modified;
}

}  // namespace firn
