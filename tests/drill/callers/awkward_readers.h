#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/drill/claimant/oracle.h"
#include "tests/support/fleet/awkward_client.h"

namespace firn {

// A few correct but awkward clients in addition to a drill's load. They request long lists of ids
// and read the answers slowly or after a pause, so that servers always have unsent answers. Each
// client uses one server until its connection ends, then the next. Used by one thread.
class AwkwardReaders {
 public:
  // Starts the clients. `ports`: the servers' ports on loopback.
  explicit AwkwardReaders(const std::vector<int>& ports, const std::string& tag = "default");

  // Returns the number of answers with ids, over all clients.
  int64_t answered() const;

  void Stop();

  // Must be called after Stop. Returns all their ids. Fails the test for each answer that does not
  // belong to its call.
  std::vector<int64_t> ids() const;
  // Passes their ids to the oracle. Returns the number of ids.
  int64_t Confess(DuplicateOracle& oracle) const;

 private:
  std::vector<std::unique_ptr<AwkwardClient>> clients_;
};

}  // namespace firn
