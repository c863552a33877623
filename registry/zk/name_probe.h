#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace firn {

// Whether the names of ZooKeeper's servers can be looked up at this moment. The client library does
// that whenever a handle is opened, on the thread that opens it, and the system's resolver may take
// half a minute while name service is away. So they are looked up here first, on a thread that
// nobody waits for.
//
// Used by one thread.
class NameProbe {
 public:
  // `hosts` is "host:port,host:port". `wake` is called on a thread of the probe's own whenever an
  // answer is there; never after the destructor.
  NameProbe(const std::string& hosts, std::function<void()> wake);
  ~NameProbe();
  NameProbe(const NameProbe&) = delete;
  NameProbe& operator=(const NameProbe&) = delete;

  // Whether all names were found; the next Ask looks again. Empty: that is being looked up, ask
  // again after `wake`. Addresses need no looking up.
  std::optional<bool> Ask();

  bool under_way() const { return under_way_; }

 private:
  struct Shared;

  const std::shared_ptr<Shared> shared_;
  bool under_way_ = false;
};

}  // namespace firn
