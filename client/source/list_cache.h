#pragma once

#include <cstdint>
#include <string>

#include "client/server_source.h"
#include "common/base/status.h"

namespace firn {

// The last good list of servers in a file, so that a program starts while the directory is away.
//
//  1. A new list is written beside the file, forced to the disk and renamed over it: whoever reads
//     finds the old one or the new one. What is torn all the same is refused by its check.
//  2. Mode 0600. A file that others may write, or that belongs to somebody else, is refused: it
//     decides whom a program asks for ids.
//  3. A list of another registry is refused.
//
// Programs may share a file, and so may clients of one program: the last list wins. One thread at a
// time.
class ListCache {
 public:
  // The file at `path`, for lists of `registry`; its folder must exist. Nothing is touched yet.
  ListCache(std::string path, std::string registry);

  // The list, with `from_cache` set. kNotFound: there is no file. kCorrupt, kDenied, kConflict:
  // there is one that is not to be used, and why.
  Result<ServerList> Read() const;

  // The file beside it that Write fills first; no other cache of any process has the same.
  std::string draft() const;

  // Replaces the file. On failure it is as it was.
  Status Write(const ServerList& list) const;

 private:
  const std::string path_;
  const std::string registry_;
  const uint64_t number_;  // no other cache of this process has it
};

}  // namespace firn
