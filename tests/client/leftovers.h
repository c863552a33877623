#pragma once

#include <cstddef>
#include <string>

namespace firn {

// Finds threads, sockets and other kernel objects that a client leaves behind. Create it before the
// client.
class Leftovers {
 public:
  // Must be called after the client was destroyed. Returns a line for each kind of object whose
  // number has grown, after waiting for objects that are about to end.
  std::string Faults() const;

 private:
  const size_t threads_ = CountThreads(), handles_ = CountHandles();

  static size_t CountThreads();
  // Only descriptors that are not files, because a sanitizer opens files itself.
  static size_t CountHandles();
};

}  // namespace firn
