#pragma once

#include <memory>
#include <optional>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/seam/coordinator.h"
#include "server/issue/catalogue.h"
#include "server/issue/issuer.h"
#include "server/node/tag_follower.h"
#include "tests/sim/mutants.h"

namespace firn {

// The tags of a simulated process: the product's follower and issuer, with the same connection to
// the registry as its claim. Owned by one thread.
class HostTags {
 public:
  // References must outlive it. `snowflake` issues under the process's claims.
  HostTags(Coordinator& registry, Strategy& snowflake, uint64_t seed, Mutant mutant);
  ~HostTags();

  void Tick(BootMs now);

  // Returns why a call for the tag `default` would be refused, or nullopt before this process has
  // read the tag. A process can have read the registry before a restore re-created the tag.
  std::optional<Refusal> WhyNotDefault() const;

 private:
  class Deaf;
  class RootSeam;

  SeededEntropy entropy_;
  std::unique_ptr<RootSeam> registry_;
  std::unique_ptr<Deaf> rejections_;
  Catalogue catalogue_;
  Issuer issuer_;
  TagFollower follower_;
  bool has_read_ = false;
};

}  // namespace firn
