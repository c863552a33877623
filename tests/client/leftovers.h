#pragma once

#include <cstddef>
#include <string>

namespace firn {

// What a client must not leave behind: threads, and sockets and what else the kernel keeps for it.
// Made before the client.
class Leftovers {
 public:
  // When the client is gone: what there is more of than before, a line each. What is about to go
  // is waited for.
  std::string Faults() const;

 private:
  const size_t threads_ = CountThreads(), handles_ = CountHandles();

  static size_t CountThreads();
  // Of descriptors those that are no files: a sanitizer opens some of these for itself.
  static size_t CountHandles();
};

}  // namespace firn
