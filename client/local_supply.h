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

// How runs of ids are fetched ahead of need. Thread-safe; outlives whoever was made with it.
class RangeFetcher {
 public:
  // Exactly the ids that were asked for, in ascending order, or why there are none. The code names
  // the remedy: kUnavailable passes by itself, kInvalid, kNotFound, kDenied and kExhausted do not.
  // kNotFound: the tag does not exist, or was deleted.
  using Done = std::function<void(Result<std::vector<IdRun>>)>;

  // Asks the cluster for `count` ids of `tag`, with the client's own deadlines and failover.
  // `done` is called once, on a thread of the client's, never inside this call; it must not block.
  // Not at all when the client is destroyed first.
  virtual void Fetch(const std::string& tag, int64_t count, Done done) = 0;

 protected:
  ~RangeFetcher() = default;
};

// Ids that the program has in memory already. Client::GetId asks here before it asks a server:
// first TryTake, then, where it may wait, AwaitAndTake. Thread-safe. Owned by the client; destroyed
// when no Fetch can answer any more.
//
// Sharp edge: in a child of fork() the object is left behind as it is, and its ids with it, so that
// parent and child never give the same one. The child's client makes a supply of its own.
class LocalSupply {
 public:
  virtual ~LocalSupply() = default;

  // Why it cannot be used, if so; the client's own status then. The same at any time.
  virtual Status status() const { return {}; }

  // One id of `tag`, if there is one at hand. Never waits. Nothing: ask a server.
  virtual std::optional<int64_t> TryTake(std::string_view tag) = 0;

  // When TryTake found nothing but more has been asked for: waits for that, `patience` at most, and
  // takes one id of it. So many threads that need ids at once do not all ask for single ones as
  // well. Nothing: ask a server. Not on the thread that answers fetches.
  virtual std::optional<int64_t> AwaitAndTake(std::string_view tag, Milliseconds patience) = 0;

  struct Counts {
    uint64_t taken = 0;    // ids given
    uint64_t missed = 0;   // calls of TryTake for tags that have a supply, when it was empty
    uint64_t awaited = 0;  // of those, given an id by AwaitAndTake
    uint64_t dropped = 0;  // ids that were fetched and not given: too old, or of a deleted tag
  };
  virtual Counts counts() const = 0;
};

// Makes the supply of one client. `fetcher` outlives it and may be used at once.
using LocalSupplyMaker = std::function<std::unique_ptr<LocalSupply>(RangeFetcher& fetcher)>;

}  // namespace firn
