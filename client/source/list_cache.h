#pragma once

#include <cstdint>
#include <string>

#include "client/server_source.h"
#include "common/base/status.h"

namespace firn {

// The last good list of servers in a file, so that a program can start while the registry is
// unreachable.
//  1. A new list is written to a draft, synced and renamed over the file: readers find the old or
//     the new list. A torn file is refused by its checksum.
//  2. The mode is 0600. A file of another user, or one that others can write, is refused: it
//     determines the servers that a program uses.
//  3. A list of another registry is refused.
//
// Programs, and clients of one program, may share a file: the last list wins. One thread at a
// time.
class ListCache {
 public:
  // Uses the file at `path` for lists of `registry`; its folder must exist. Does no I/O yet.
  ListCache(std::string path, std::string registry);

  // Returns the list, with `from_cache` set. kNotFound if there is no file. kCorrupt, kDenied or
  // kConflict if it must not be used, with the reason.
  Result<ServerList> Read() const;

  // Returns the name of Write's draft, which differs for each cache of each process.
  std::string draft() const;

  // Replaces the file. On failure the old file stays.
  Status Write(const ServerList& list) const;

 private:
  const std::string path_;
  const std::string registry_;
  const uint64_t number_;  // unique among the caches of this process
};

}  // namespace firn
