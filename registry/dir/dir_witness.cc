#include "registry/dir/dir_witness.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/parse.h"
#include "registry/state/abstract_socket.h"

namespace firn {
namespace {

constexpr int kNamesMax = 1000;  // for one process, place and inode

// Returns the prefixes of the names for a path: "firn-dir:<hash of a place>:". A hash, since the
// length of names is limited. The places are the path as it is written, for a symbolic link that
// leads elsewhere later, and each folder above the resolved path, as device and inode, with the
// rest of the path: whichever of these folders still exists at a later start, and whichever way
// leads to it, shows the same place.
Result<std::vector<std::string>> PrefixesOf(const std::string& path) {
  std::error_code error;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  if (error) return FileFailure("resolve", path, error.value());
  std::vector<std::string> prefixes{Cat("firn-dir:", Fnv1a(path), ":")};
  for (std::filesystem::path above = real; above.has_relative_path();) {
    above = above.parent_path();
    struct stat info {};
    if (stat(above.c_str(), &info) != 0) return FileFailure("stat", above, errno);
    const std::string place =
        Cat(info.st_dev, ":", info.st_ino, ":", real.lexically_relative(above).native());
    prefixes.push_back(Cat("firn-dir:", Fnv1a(place), ":"));
  }
  return prefixes;
}

Result<UnsharedFile> TakeOneOf(const std::string& stem) {
  for (int i = 0; i < kNamesMax; ++i) {
    Result<UnsharedFile> bound = TakeAbstractName(Cat(stem, i));
    if (bound.ok() || bound.code() != Code::kConflict) return bound;
  }
  return Unavailable("too many users of one directory registry in one process");
}

// Returns the process of a line of /proc/net/unix if it has this prefix and not this inode.
std::optional<pid_t> OtherUser(std::string_view line, const std::string& prefix,
                               std::optional<uint64_t> inode) {
  const size_t at = line.find("@" + prefix);
  if (at == line.npos) return std::nullopt;
  line.remove_prefix(at + 1 + prefix.size());
  const size_t colon = std::min(line.find(':'), line.size());
  const std::optional<uint64_t> of_inode = ParseNumber<uint64_t>(line.substr(0, colon));
  if (!of_inode || of_inode == inode || colon == line.size()) return std::nullopt;
  line.remove_prefix(colon + 1);
  return ParseNumber<pid_t>(line.substr(0, line.find(':'))).value_or(0);
}

}  // namespace

Result<DirWitness> DirWitness::Stand(const std::string& path, uint64_t inode) {
  FIRN_ASSIGN(const std::vector<std::string> prefixes, PrefixesOf(path));
  std::vector<UnsharedFile> sockets;
  for (const std::string& prefix : prefixes) {
    FIRN_ASSIGN(UnsharedFile bound, TakeOneOf(Cat(prefix, inode, ":", getpid(), ":")));
    sockets.push_back(std::move(bound));
  }
  return DirWitness(std::move(sockets));
}

Result<std::optional<pid_t>> DirWitness::StaleUser(const std::string& path,
                                                   std::optional<uint64_t> inode) {
  FIRN_ASSIGN(const std::vector<std::string> prefixes, PrefixesOf(path));
  std::ifstream sockets("/proc/net/unix");
  for (std::string line; std::getline(sockets, line);) {
    for (const std::string& prefix : prefixes) {
      if (const auto pid = OtherUser(line, prefix, inode)) return pid;
    }
  }
  return std::optional<pid_t>();
}

}  // namespace firn
