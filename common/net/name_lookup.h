#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/net/address.h"
#include "common/net/endpoint.h"

namespace firn {

// Looks up names with the system's resolver. A lookup may take 30 s and cannot be interrupted, so
// lookups run on detached threads, which use only the shared state of this object. Results after
// Stop are dropped. Thread-safe.
class NameLookup {
 public:
  static constexpr size_t kThreadsMax = 4;  // concurrent lookups; others wait
  // Up to this many hanging lookups do not count for kThreadsMax, so that they do not delay other
  // names.
  static constexpr size_t kHangingMax = 256;
  static constexpr Milliseconds kHangsAfter{1'000};

  // Returns all addresses of an endpoint; empty if the name does not exist. May block for an
  // unlimited time.
  using Resolve = std::function<std::vector<Address>(const Endpoint&)>;
  // Receives the addresses of a name that was passed to Start. Called on a lookup's thread, one
  // call at a time. Must not block, and must not call this object.
  using Done = std::function<void(const std::string& name, const std::vector<Address>& found)>;

  explicit NameLookup(Done done, Resolve resolve = SystemAddresses,
                      Milliseconds hangs_after = kHangsAfter);
  ~NameLookup() { Stop(); }
  NameLookup(const NameLookup&) = delete;
  NameLookup& operator=(const NameLookup&) = delete;

  // Starts a lookup, unless one of the same name is in progress. Calls `done` once, with the
  // result. Returns false if no thread can be created or the object was stopped; then `done` is not
  // called.
  bool Start(const std::string& name, const Endpoint& endpoint);

  // Once this returns, `done` neither runs nor is called again. Does not wait for lookups.
  void Stop();

  // Returns the addresses from getaddrinfo, in its order.
  static std::vector<Address> SystemAddresses(const Endpoint& endpoint);

 private:
  struct Shared;
  // Starts a thread that waits for the next lookup, if there is none. Called under the mutex.
  static void Spare(const std::shared_ptr<Shared>& shared);
  static void Work(const std::shared_ptr<Shared>& shared);

  const std::shared_ptr<Shared> shared_;
};

}  // namespace firn
