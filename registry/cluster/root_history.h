#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "registry/cluster/nonce.h"
#include "registry/seam/node_version.h"

namespace firn {

// The states of a cluster's root node that one process has read, each after a sync. A value.
class RootHistory {
 public:
  // Notes a state. False, and nothing is noted: an earlier state than one of those before, so the
  // registry has lost data.
  bool Note(const Nonce& era, int64_t version) {
    const bool same = !eras_.empty() && eras_.back() == era;
    if (same && IsOlder(version, version_)) return false;
    if (!same) {
      if (std::ranges::find(eras_, era) != eras_.end()) return false;
      eras_.push_back(era);
    }
    version_ = version;
    return true;
  }

 private:
  std::vector<Nonce> eras_;
  int64_t version_ = 0;  // in the last era
};

}  // namespace firn
