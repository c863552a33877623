#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/base/unshared_file.h"

namespace firn {

// The numbers of a directory registry's changes: one file has the last, and beside each node stands
// the one that touched it or its children last (NodeStat::changed_zxid). Used under the directory's
// lock by one thread.
//
// Stamps are written before the change itself: one that fails has moved a number for nothing, which
// does no harm. They are not synced, and may come back older when the machine fails. The clock then
// keeps the numbers rising, and the file does when the clock steps back.
class DirChanges {
 public:
  // Opens a file for reading and writing, or makes it, as the registry's owner's.
  using OpenFile = std::function<Result<UnsharedFile>(const std::string& path)>;

  explicit DirChanges(OpenFile open) : open_(std::move(open)) {}

  // Before anything else: where the last number stands.
  Status Start(const std::string& path);

  // The last that was counted.
  uint64_t last() const;

  // Begins another; its number, which nobody sees before it is counted.
  int64_t Begin(WallMs now);
  void Count();

  // Marks a node's folder with the number that was begun. kNotFound: there is no such folder.
  Status Stamp(const std::string& folder) const;
  // 0: it was not changed since a program made it that kept no such numbers.
  static int64_t StampOf(const std::string& folder);
  static void Erase(const std::string& folder);

 private:
  const OpenFile open_;
  UnsharedFile file_;
  uint64_t number_ = 0;  // of the one under way
};

}  // namespace firn
