#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "common/base/units.h"
#include "common/net/name_lookup.h"

namespace firn {

// Whether the names of ZooKeeper's servers can be looked up at this moment. The client library does
// that whenever a handle is opened, on the thread that opens it, and the system's resolver may take
// half a minute while name service is away. So they are looked up here first, on threads that
// nobody waits for.
//
// Used by one thread.
class NameProbe {
 public:
  // `hosts` is "host:port,host:port". `wake` is called on a thread of the probe's own whenever an
  // answer is there; never after the destructor.
  NameProbe(const std::string& hosts, std::function<void()> wake);

  // Whether all names were found; the next Ask looks again. Empty: that is being looked up, ask
  // again after `wake`. Addresses need no looking up.
  std::optional<bool> Ask();

  bool under_way() const { return under_way_; }

 private:
  void TellOfUnknown(const std::string& name);
  void OnLookedUp(bool found);

  std::set<std::string> names_;
  const std::function<void()> wake_;
  bool under_way_ = false;

  std::mutex mutex_;
  size_t awaited_ = 0;  // names, under mutex_ as the next
  bool all_found_ = true;
  std::optional<BootMs> told_at_{};
  NameLookup lookup_;  // last: it tells of what it found until it is destroyed
};

}  // namespace firn
