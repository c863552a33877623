#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/drill/claimant/oracle.h"
#include "tests/support/fleet/awkward_client.h"

namespace firn {

// A few honest but awkward clients beside a drill's own: they request lists of ids, many at a time,
// and read the answers slowly or after a pause, so that servers always have unsent answers. Each
// stays with a server until its connection ends, then goes to the next. Used by one thread.
class AwkwardReaders {
 public:
  // Ports on loopback. The clients start at once.
  explicit AwkwardReaders(const std::vector<int>& ports, const std::string& tag = "default");

  // Number of answers with ids, of all clients.
  int64_t answered() const;

  void Stop();

  // After Stop: all their ids; fails the test for each answer that does not belong to its call.
  std::vector<int64_t> ids() const;
  // Passes their ids to the oracle. Returns the number of ids.
  int64_t Confess(DuplicateOracle& oracle) const;

 private:
  std::vector<std::unique_ptr<AwkwardClient>> clients_;
};

}  // namespace firn
