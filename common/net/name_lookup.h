#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/net/address.h"
#include "common/net/endpoint.h"

namespace firn {

// Looks up names with the system's resolver, which may take 30 s and cannot be interrupted. Lookups
// therefore run on detached threads that use only this object's shared state. Results after Stop
// are dropped. Thread-safe.
class NameLookup {
 public:
  static constexpr size_t kThreadsMax = 4;  // lookups at a time; others wait
  // Hanging lookups do not count, so that they do not delay other names, up to this many.
  static constexpr size_t kHangingMax = 256;
  static constexpr Milliseconds kHangsAfter{1'000};

  // Returns all addresses of an endpoint; empty if the name does not exist. May block for any time.
  using Resolve = std::function<std::vector<Address>(const Endpoint&)>;
  // Receives the addresses of the name that was passed to Start. Called on a lookup's thread, never
  // concurrently; must not block, and must not call this object.
  using Told = std::function<void(const std::string& name, const std::vector<Address>& found)>;

  explicit NameLookup(Told told, Resolve resolve = SystemAddresses,
                      Milliseconds hangs_after = kHangsAfter);
  ~NameLookup() { Stop(); }
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // Starts a lookup, unless one of this name is in progress. `told` is called once with the result.
  // Returns false if no thread can be created; then `told` is not called.
  bool Start(const std::string& name, const Endpoint& endpoint);

  // After its return `told` is neither running nor called again. Does not wait for lookups.
  void Stop();

  // Returns getaddrinfo's addresses, in its order.
  static std::vector<Address> SystemAddresses(const Endpoint& endpoint);

 private:
  struct Shared;
  // Under the mutex: starts a thread that waits for the next lookup, if there is none.
  static void Spare(const std::shared_ptr<Shared>& shared);
  static void Work(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace firn
