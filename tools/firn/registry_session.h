#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A connection to the registry that --registry names, for one verb. Owned by one thread.
class RegistrySession {
 public:
  // Opens and connects, within --timeout_ms. kNotFound where a directory registry does not exist:
  // only the verbs that create clusters create one.
  static Result<RegistrySession> Open();
  static Result<RegistrySession> OpenOrCreate();

  BlockingCoordinator& registry() { return *blocking_; }

 private:
  explicit RegistrySession(std::unique_ptr<Coordinator> coordinator);
  static Result<RegistrySession> Connect(const std::string& place);

  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<BlockingCoordinator> blocking_;
};

// What --registry says, or else the environment's FIRN_REGISTRY; dir://./ is a folder of the
// current one, and comes by its whole path.
std::string ChosenRegistry();

// Whether --registry, the environment's FIRN_REGISTRY or the flags file names one.
bool RegistryIsNamed();

// What --registry_auth_file says, by its whole path; empty without one.
std::string ChosenCredentialsFile();

// The content of --registry_auth_file, user:password; empty without one.
Result<std::string> ChosenCredentials();

// The flags that Open reads, for a verb's list.
#define FIRN_REGISTRY_FLAGS "registry", "registry_auth_file", "timeout_ms"

}  // namespace firn
