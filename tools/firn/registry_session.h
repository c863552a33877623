#pragma once

#include <memory>

#include "common/status.h"
#include "registry/blocking_coordinator.h"
#include "registry/coordinator.h"

namespace firn {

// A connection to the registry that --registry names, for one verb. Owned by one thread.
class RegistrySession {
 public:
  // Opens and connects, within --timeout_ms.
  static Result<RegistrySession> Open();

  BlockingCoordinator& registry() { return *blocking_; }

 private:
  explicit RegistrySession(std::unique_ptr<Coordinator> coordinator);

  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<BlockingCoordinator> blocking_;
};

// The flags that Open reads, for a verb's list.
#define FIRN_REGISTRY_FLAGS "registry", "registry_auth_file", "timeout_ms"

}  // namespace firn
