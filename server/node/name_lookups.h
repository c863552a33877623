#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/units.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"
#include "server/issue/tag_seeker.h"

namespace firn {

// Looks up unknown tags of calls in the registry, because the definition of a new tag may not have
// arrived yet. If the cluster's settings permit it, creates missing tags
// (registry/cluster/first_use.h). Each call waits for a reading that is sent after its arrival;
// calls that wait for the same name share a reading.
//
// Owned by the control thread, except Seek.
class NameLookups final : public TagSeeker {
 public:
  // Maximum number of lookups per second. Further calls are refused and can be retried.
  static constexpr int kPerSecond = 100;
  // Maximum number of created tags per second.
  static constexpr int kCreatedPerSecond = 10;

  // No tags are created for this time after the beginning of a session. Meanwhile, servers that
  // remember data that the registry has lost can freeze the cluster.
  static constexpr Milliseconds kNotCreatedFor{3'000};

  // `there` is called for a tag that exists; calls for it wait until it is served. `creatable`
  // returns false if this server knows a reason not to create a tag of this name.
  NameLookups(Coordinator& coordinator, std::function<void(const std::string& tag)> there,
              std::function<bool(const std::string& tag)> creatable)
      : there_(std::move(there)), creatable_(std::move(creatable)), async_registry_(coordinator) {}

  // Does the work that is due. Call about every 50 ms.
  void Tick(BootMs now);

  // Any thread.
  Found Seek(std::string_view name, uint64_t& ticket, bool may_create) override;

 private:
  // The readings for one name, numbered from 1.
  struct Readings {
    uint64_t sent = 0;      // the reading in flight, or the last one
    uint64_t answered = 0;  // the last reading that has ended
    uint64_t wanted = 0;
    bool may_create = false;           // whether one of the calls may create the tag
    Found found = Found::kUnanswered;  // result of the last reading
    BootMs idle_since;  // when the reading ended, or the time of the last call for it
  };

  // Returns the names to look up, each with the right to create it.
  std::vector<std::pair<std::string, bool>> TakeWanted(BootMs now);
  Task<> LookUp(std::string name, bool may_create);
  Task<Found> Use(std::string name, bool may_create);
  bool MayCreateNow(const std::string& name) const;

  const std::function<void(const std::string& tag)> there_;
  const std::function<bool(const std::string& tag)> creatable_;
  AsyncRegistry async_registry_;
  std::map<std::string, Task<>> in_flight_;  // readings in flight or just ended
  int creations_left_ = kCreatedPerSecond;
  int unfinished_ = 0;     // creations that wait or are in flight
  bool creating_ = false;  // whether a creation is in flight
  int64_t session_ = 0;
  BootMs session_since_;

  std::mutex mutex_;                                       // guards the members below
  std::map<std::string, Readings, std::less<>> readings_;  // by name
  int left_ = kPerSecond;
  BootMs since_;
  BootMs now_;
  bool reachable_ = false;
};

}  // namespace firn
