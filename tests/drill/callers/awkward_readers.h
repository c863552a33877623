#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/drill/claimant/oracle.h"
#include "tests/support/fleet/awkward_client.h"
#include "tests/support/process.h"

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

  // Waits until each caller has made `more` calls, and these clients got an answer. `calls` is the
  // member of a caller that returns the number of its calls.
  template <typename Caller, typename Calls>
  bool AllGetMore(const std::vector<std::unique_ptr<Caller>>& callers, Calls calls,
                  int64_t more) const {
    std::vector<int64_t> goals;
    for (const auto& caller : callers) goals.push_back(std::invoke(calls, *caller) + more);
    const int64_t answered_before = answered();
    return Eventually(kPatience, [&] {
      bool all = answered() > answered_before;
      for (size_t i = 0; i < goals.size(); ++i) all &= std::invoke(calls, *callers[i]) >= goals[i];
      return all;
    });
  }

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
