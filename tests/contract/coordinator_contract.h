#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "registry/seam/coordinator.h"
#include "tests/support/coordinator_client.h"

namespace firn {

// One registry, empty at first, that several clients can connect to.
class CoordinatorWorld {
 public:
  virtual ~CoordinatorWorld() = default;

  virtual std::unique_ptr<Coordinator> Connect() = 0;

  // Sets the version as if the node had been set that often. False: that would take too long here.
  virtual bool SetVersion(const std::string& path, int64_t version) {
    static_cast<void>(path);
    static_cast<void>(version);
    return false;
  }
};

// The fixture of the suite in coordinator_contract.cc and coordinator_changes.cc. Each
// implementation's test program compiles the suite and lists its worlds with
// INSTANTIATE_TEST_SUITE_P.
struct WorldMaker {
  std::string name;
  std::function<std::unique_ptr<CoordinatorWorld>()> make;

  friend std::ostream& operator<<(std::ostream& out, const WorldMaker& maker) {
    return out << maker.name;
  }
};

class CoordinatorContract : public testing::TestWithParam<WorldMaker> {
 protected:
  void SetUp() override;
  std::unique_ptr<CoordinatorClient> Connect();
  int64_t ChangedAt(const std::string& path);  // as `a` reads it after a sync

  // The root has the data "meta"; `b` is a second client.
  std::unique_ptr<CoordinatorWorld> world;
  std::unique_ptr<CoordinatorClient> a;
  std::unique_ptr<CoordinatorClient> b;
};

}  // namespace firn
