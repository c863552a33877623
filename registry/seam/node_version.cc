#include "registry/seam/node_version.h"

#include "common/base/printed_command.h"

namespace firn {

size_t AddSet(std::vector<Write>& writes, const std::string& path, const std::string& data,
              int64_t version) {
  writes.push_back(Write::Set(path, data, version));
  // The first set guards both.
  if (version == kUnguardedVersion - 1) {
    writes.push_back(Write::Set(path, data, Write::kAnyVersion));
  }
  return writes.size() - 1;
}

std::string UnguardedVersionFault(const std::string& what) {
  return AskForRestore(what + " has version -1, at which concurrent writes cannot be detected");
}

}  // namespace firn
