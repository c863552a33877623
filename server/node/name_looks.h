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
#include "registry/seam/coordinator.h"
#include "registry/seam/talk.h"
#include "server/issue/tag_seeker.h"

namespace firn {

// Looks in the registry for tags that calls name and nobody here knows: one that has just been made
// may be on its way. Each call waits for a look that is sent after it has come; calls that wait
// together for a name share one.
//
// Owned by the control thread, but for Seek.
class NameLooks final : public TagSeeker {
 public:
  // So many names may be looked for in a second; beyond that, and without a registry that answers,
  // a server says what it knows.
  static constexpr int kPerSecond = 100;

  // `there` is told of a tag that was found, and that calls wait for until it is served.
  NameLooks(Coordinator& coordinator, std::function<void(const std::string& tag)> there)
      : there_(std::move(there)), talk_(coordinator) {}

  // Does what is due. Call every 50 ms or so.
  void Tick(BootMs now);

  Found Seek(std::string_view name, uint64_t& ticket) override;  // any thread

 private:
  // Those for one name, numbered from 1.
  struct Looks {
    uint64_t sent = 0;      // the look on its way, or the last one
    uint64_t answered = 0;  // the last look that has ended
    uint64_t wanted = 0;
    Found found = Found::kUnanswered;  // by the last look
    BootMs idle_since;
  };

  std::vector<std::string> TakeWanted();
  Task<> Look(std::string name);

  const std::function<void(const std::string& tag)> there_;
  BootMs now_;
  Talk talk_;
  std::map<std::string, Task<>> looking_;  // those on their way, or just ended

  std::mutex mutex_;                                 // guards all below
  std::map<std::string, Looks, std::less<>> looks_;  // by name
  int left_ = kPerSecond;
  BootMs since_;
  bool reachable_ = false;
};

}  // namespace firn
