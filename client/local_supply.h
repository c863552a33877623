#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/id_run.h"

namespace firn {

// Fetches runs of ids for a LocalSupply. Thread-safe; outlives the supply.
class RangeFetcher {
 public:
  // Receives exactly the requested ids, in ascending order, or a failure. The code names the
  // remedy: kUnavailable ends by itself; kInvalid, kNotFound, kDenied and kExhausted do not.
  // kNotFound: the tag does not exist, or was deleted.
  using Done = std::function<void(Result<std::vector<IdRun>>)>;

  // Requests `count` ids of `tag` from the cluster, with the client's deadlines and failover.
  // `done` is called once, on a thread of the client, never inside this call; it must not block.
  // It is not called if the client is destroyed first.
  virtual void Fetch(const std::string& tag, int64_t count, Done done) = 0;

 protected:
  ~RangeFetcher() = default;
};

// Prefetched ids in memory. Client::GetId uses them before it asks a server: it calls TryTake and
// then, if it may wait, AwaitAndTake. Thread-safe. Owned by the client, which destroys it after the
// last answer to a Fetch.
//
// Sharp edge: a child of fork() never uses the inherited object or its ids, so that parent and
// child never issue the same id. The child's client creates its own supply.
class LocalSupply {
 public:
  virtual ~LocalSupply() = default;

  // Returns ok, or why the supply cannot be used; then it is the client's status. Never changes.
  virtual Status status() const { return {}; }

  // Returns an id of `tag`, without waiting. nullopt: ask a server.
  virtual std::optional<int64_t> TryTake(std::string_view tag) = 0;

  // Call it after TryTake found nothing. Waits for a fetch in progress, at most `patience`, and
  // takes an id of it, so that many waiting threads do not each send a request. nullopt: ask a
  // server. Must not be called on the thread that answers fetches.
  virtual std::optional<int64_t> AwaitAndTake(std::string_view tag, Milliseconds patience) = 0;

  struct Counts {
    uint64_t taken = 0;    // ids taken
    uint64_t missed = 0;   // calls of TryTake that found the supply of their tag empty
    uint64_t awaited = 0;  // of those, calls that got an id by AwaitAndTake
    uint64_t dropped = 0;  // fetched ids that were dropped: too old, or of a deleted tag
  };
  virtual Counts counts() const = 0;
};

// Creates the supply of one client. `fetcher` outlives it and may be used at once.
using LocalSupplyMaker = std::function<std::unique_ptr<LocalSupply>(RangeFetcher& fetcher)>;

}  // namespace firn
