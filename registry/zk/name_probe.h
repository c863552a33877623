#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "common/base/units.h"
#include "common/net/name_lookup.h"

namespace firn {

// Checks whether the host names of ZooKeeper's servers can currently be resolved. The client
// library resolves them whenever a handle is opened, on the thread that opens it. The system's
// resolver may take half a minute while the name service is unreachable. So they are resolved here
// first, on other threads.
//
// Used by one thread.
class NameProbe {
 public:
  // `hosts` is "host:port,host:port". `wake` is called on a thread of the probe whenever a result
  // is available; never after the destructor.
  NameProbe(const std::string& hosts, std::function<void()> wake);

  // Returns whether all names were resolved; the next Ask resolves them again. Empty: the lookup is
  // running, ask again after `wake`. Addresses are not resolved.
  std::optional<bool> Ask();

  bool under_way() const { return under_way_; }

 private:
  void LogUnknownName(const std::string& name);
  void OnLookedUp(bool found);

  std::set<std::string> names_;
  const std::function<void()> wake_;
  bool under_way_ = false;

  std::mutex mutex_;
  size_t awaited_ = 0;  // names, under mutex_ as the next
  bool all_found_ = true;
  std::optional<BootMs> told_at_{};
  NameLookup lookup_;  // last: it reports results until it is destroyed
};

}  // namespace firn
