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

// Looks up in the registry the tags that calls name and that this server does not know: the
// definition of a new tag may not have arrived yet. Each call waits for a reading that is sent
// after its arrival; calls that wait for the same name share one.
//
// Owned by the control thread, except Seek.
class NameLookups final : public TagSeeker {
 public:
  // Maximum number of lookups per second. Calls beyond that are refused, and may be retried.
  static constexpr int kPerSecond = 100;

  // `there` is called for a tag that was found; calls for it wait until it is served.
  NameLookups(Coordinator& coordinator, std::function<void(const std::string& tag)> there)
      : there_(std::move(there)), async_registry_(coordinator) {}

  // Does the work that is due. Call about every 50 ms.
  void Tick(BootMs now);

  Found Seek(std::string_view name, uint64_t& ticket) override;  // any thread

 private:
  // Readings for one name, numbered from 1.
  struct Readings {
    uint64_t sent = 0;      // the reading in flight, or the last one
    uint64_t answered = 0;  // the last reading that has ended
    uint64_t wanted = 0;
    Found found = Found::kUnanswered;  // result of the last reading
    BootMs idle_since;                 // when it ended, or a call asked for it last
  };

  std::vector<std::string> TakeWanted(BootMs now);
  Task<> LookUp(std::string name);

  const std::function<void(const std::string& tag)> there_;
  AsyncRegistry async_registry_;
  std::map<std::string, Task<>> in_flight_;  // readings in flight, or just ended

  std::mutex mutex_;                                       // guards the members below
  std::map<std::string, Readings, std::less<>> readings_;  // by name
  int left_ = kPerSecond;
  BootMs since_;
  BootMs now_;
  bool reachable_ = false;
};

}  // namespace firn
