#pragma once

#include <memory>
#include <string>

#include "common/base/status.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A connection to the chosen registry, for one verb. Owned by one thread.
class RegistrySession {
 public:
  // Opens and connects, within --timeout_ms. Open fails with kNotFound if a directory registry does
  // not exist; verbs that create clusters call OpenOrCreate.
  static Result<RegistrySession> Open();
  static Result<RegistrySession> OpenOrCreate();
  // Opens the root of the chosen registry's ZooKeeper ensemble. kInvalid if it is not in ZooKeeper.
  static Result<RegistrySession> OpenEnsemble();

  BlockingCoordinator& registry() { return *blocking_; }

 private:
  explicit RegistrySession(std::unique_ptr<Coordinator> coordinator);
  static Result<RegistrySession> Connect(const std::string& place, bool ensemble = false);

  std::unique_ptr<Coordinator> coordinator_;
  std::unique_ptr<BlockingCoordinator> blocking_;
};

// Returns --registry if given, otherwise FIRN_REGISTRY of the environment, otherwise the flag's
// default. A path relative to the current folder (dir://./) is made absolute.
std::string ChosenRegistry();

// Returns whether --registry, FIRN_REGISTRY or the flags file names a registry.
bool RegistryIsNamed();

// Returns --registry_auth_file as an absolute path, or "" if it is not set.
std::string ChosenCredentialsFile();

// Returns the content of --registry_auth_file, user:password, or "" if it is not set.
Result<std::string> ChosenCredentials();

// The flags that Open reads, for a verb's list.
#define FIRN_REGISTRY_FLAGS "registry", "registry_auth_file", "timeout_ms"

}  // namespace firn
