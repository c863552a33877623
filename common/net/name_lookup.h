#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/net/address.h"
#include "common/net/endpoint.h"

namespace firn {

// Looks names up with the system's resolver, which may take half a minute and cannot be
// interrupted. So lookups run on threads that nobody waits for: what they find after Stop is
// dropped, and they keep nothing of their owner but this object's inside. Thread-safe.
class NameLookup {
 public:
  static constexpr size_t kThreadsMax = 4;  // lookups at a time; others wait for their turn
  // Those that hang do not count, so that they keep no other name from its turn; so many at most.
  static constexpr size_t kHangingMax = 256;
  static constexpr Milliseconds kHangsAfter{1'000};

  // All addresses of an endpoint; none when it has no such name. Blocks as long as it likes.
  using Resolve = std::function<std::vector<Address>(const Endpoint&)>;
  // What was found, under the name that Start was given. On a thread of the lookup's own, never
  // two at a time; must not wait, and must not call this object.
  using Told = std::function<void(const std::string& name, const std::vector<Address>& found)>;

  explicit NameLookup(Told told, Resolve resolve = SystemAddresses,
                      Milliseconds hangs_after = kHangsAfter);
  ~NameLookup() { Stop(); }
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // One answer will be told; of a lookup of this name that is under way, it is that one's. False:
  // none will, as the system has no thread left.
  bool Start(const std::string& name, const Endpoint& endpoint);

  // Tells nothing more; when it returns, `told` is not being called. Waits for no lookup.
  void Stop();

  // What getaddrinfo says, in its order.
  static std::vector<Address> SystemAddresses(const Endpoint& endpoint);

 private:
  struct Shared;
  // Under the mutex: begins the thread that waits for the next turn, where there is none.
  static void Spare(const std::shared_ptr<Shared>& shared);
  static void Work(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace firn
