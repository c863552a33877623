#include "registry/dir/dir_witness.h"

#include <algorithm>
#include <fstream>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/fnv.h"
#include "common/base/parse.h"
#include "registry/state/abstract_socket.h"

namespace firn {
namespace {

constexpr int kNamesMax = 1000;  // for one process and directory

// "firn-dir:<hash of the path>:", the prefix of all names for a path. A hash, since the length of
// names is limited.
std::string PrefixOf(const std::string& path) { return Cat("firn-dir:", Fnv1a(path), ":"); }

}  // namespace

Result<DirWitness> DirWitness::Stand(const std::string& path, uint64_t inode) {
  const std::string stem = Cat(PrefixOf(path), inode, ":", getpid());
  for (int i = 0; i < kNamesMax; ++i) {
    Result<UnsharedFile> bound = TakeAbstractName(Cat(stem, ":", i));
    if (bound.ok()) return DirWitness(*std::move(bound));
    if (bound.code() != Code::kConflict) return bound.status();
  }
  return Unavailable("too many users of " + path + " in one process");
}

std::optional<pid_t> DirWitness::StaleUser(const std::string& path, uint64_t inode) {
  const std::string prefix = "@" + PrefixOf(path);
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    const size_t at = line.find(prefix);
    if (at == std::string::npos) continue;
    std::string_view rest = line;
    rest.remove_prefix(at + prefix.size());
    const size_t colon = std::min(rest.find(':'), rest.size());
    const std::optional<uint64_t> of_inode = ParseNumber<uint64_t>(rest.substr(0, colon));
    if (!of_inode || *of_inode == inode || colon == rest.size()) continue;
    rest.remove_prefix(colon + 1);
    return ParseNumber<pid_t>(rest.substr(0, rest.find(':'))).value_or(0);
  }
  return std::nullopt;
}

}  // namespace firn
