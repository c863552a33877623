#pragma once

#include <functional>
#include <string>
#include <utility>

#include "tests/support/registry/forwarding_coordinator.h"

namespace firn {

// A registry in which another client acts right after a certain node was read, and before the
// reader uses the result. `inner` must outlive it.
class BusyCoordinator : public ForwardingCoordinator {
 public:
  using ForwardingCoordinator::ForwardingCoordinator;

  void OnceAfterReading(const std::string& path, std::function<void()> happens) {
    path_ = path;
    happens_ = std::move(happens);
  }

  void Read(const std::string& path, ReadDone done, Changed changed) override {
    ForwardingCoordinator::Read(path, std::move(done), std::move(changed));
    if (path == path_ && happens_) std::exchange(happens_, {})();
  }

 private:
  std::string path_;
  std::function<void()> happens_;
};

}  // namespace firn
