#pragma once

#include <cstddef>
#include <string>

namespace firn {

// Finds threads, sockets and other kernel objects that a client leaves behind. Create it before the
// client.
class Leftovers {
 public:
  // Call it after the client's end. Returns a line for each kind of object of which there are more
  // than before; waits for objects that are about to end.
  std::string Faults() const;

 private:
  const size_t threads_ = CountThreads(), handles_ = CountHandles();

  static size_t CountThreads();
  // Only descriptors that are not files, because a sanitizer opens files itself.
  static size_t CountHandles();
};

}  // namespace firn
