#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "common/base/status.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/dubbo/dubbo_publisher.h"
#include "registry/seam/control_loop.h"
#include "server/flags/options.h"

namespace firn {

// Registers the server for Dubbo's consumers, on its own thread and in its own ZooKeeper session:
// faults of these nodes cannot delay or end the session of the claim.
class DubboListing {
 public:
  // Returns the weight that consumers see; empty: this server is not registered. Called on the
  // thread of this object.
  using Weight = std::function<std::optional<int>()>;

  // kInvalid if the registry is not in ZooKeeper. `clock` and `entropy` must outlive this.
  static Result<std::unique_ptr<DubboListing>> Open(const ServerOptions& options,
                                                    const Clock& clock, Entropy& entropy);

  void Start(Weight weight);

  // Deletes the nodes, now and permanently. Blocks until ZooKeeper confirms it, a second at most.
  void Withdraw();

  void Stop() { loop_.Stop(); }

  // Whether this server's nodes may exist. Any thread.
  bool announced() const { return publisher_.announced(); }
  // Whether they exist. Any thread.
  bool registered() const { return publisher_.registered(); }

 private:
  DubboListing(std::unique_ptr<Coordinator> coordinator, DubboProvider provider, const Clock& clock,
               Entropy& entropy);

  const Clock& clock_;
  bool withdrawn_ = false;  // used on the loop's thread, like publisher_
  ControlLoop loop_;
  DubboPublisher publisher_;
};

}  // namespace firn
