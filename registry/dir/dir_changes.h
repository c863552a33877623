#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/base/unshared_file.h"

namespace firn {

// The numbers of a directory registry's changes. One file contains the last number; a file beside
// each node contains the number of the last change to the node or its children
// (NodeStat::changed_zxid). Used under the directory's lock by one thread.
//
// Stamps are written before the change itself: a failed change only wastes a number. They are not
// synced, and may be older after a machine failure. Then the clock keeps the numbers rising; if the
// clock steps back, the file does.
class DirChanges {
 public:
  // Opens or creates a file for reading and writing, as the registry's owner.
  using OpenFile = std::function<Result<UnsharedFile>(const std::string& path)>;

  explicit DirChanges(OpenFile open) : open_(std::move(open)) {}

  // Opens the file of the last number. Call it first.
  Status Start(const std::string& path);

  // The last counted number.
  uint64_t last() const;

  // Begins a change and returns its number, which is visible only after Count.
  int64_t Begin(WallMs now);
  void Count();

  // Writes the begun number into a node's folder. kNotFound: there is no such folder.
  Status Stamp(const std::string& folder) const;
  // 0: not changed since it was created by a program without such numbers.
  static int64_t StampOf(const std::string& folder);
  static void Erase(const std::string& folder);

 private:
  const OpenFile open_;
  UnsharedFile file_;
  uint64_t number_ = 0;  // of the current change
};

}  // namespace firn
