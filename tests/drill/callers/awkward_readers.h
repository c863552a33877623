#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tests/drill/claimant/oracle.h"
#include "tests/support/fleet/awkward_client.h"

namespace firn {

// A few honest clients with awkward manners beside a drill's own: they ask for lists of ids, many
// at a time, and read the answers slowly or after a pause, so that servers always have some on
// their way out. Each stays with a server until its connection ends, then goes to the next. Used by
// one thread.
class AwkwardReaders {
 public:
  // On loopback. They begin at once.
  explicit AwkwardReaders(const std::vector<int>& ports, const std::string& tag = "default");

  // How many answers with ids they have got, together.
  int64_t answered() const;

  void Stop();

  // After Stop: all their ids, and a failure of the test for each answer that was none to its call.
  std::vector<int64_t> ids() const;
  // The same, given to the judge of all. How many there are.
  int64_t Confess(DuplicateOracle& oracle) const;

 private:
  std::vector<std::unique_ptr<AwkwardClient>> clients_;
};

}  // namespace firn
