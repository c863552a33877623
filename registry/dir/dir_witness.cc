#include "registry/dir/dir_witness.h"

#include <charconv>
#include <fstream>
#include <string_view>
#include <utility>

#include <unistd.h>

#include "registry/state/abstract_socket.h"

namespace firn {
namespace {

constexpr int kNamesMax = 1000;  // of one process and directory

uint64_t HashOf(std::string_view path) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a: names are short, and paths need not fit in one
  for (const char c : path) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
  return hash;
}

// "firn-dir:<hash of the path>:", which all names of a path begin with.
std::string PrefixOf(const std::string& path) {
  return "firn-dir:" + std::to_string(HashOf(path)) + ":";
}

}  // namespace

Result<DirWitness> DirWitness::Stand(const std::string& path, uint64_t inode) {
  const std::string stem = PrefixOf(path) + std::to_string(inode) + ":" + std::to_string(getpid());
  for (int i = 0; i < kNamesMax; ++i) {
    Result<UnsharedFile> bound = TakeAbstractName(stem + ":" + std::to_string(i));
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
    uint64_t of_inode = 0;
    pid_t pid = 0;
    const char* const end = rest.data() + rest.size();
    const auto parsed = std::from_chars(rest.data(), end, of_inode);
    if (parsed.ec != std::errc() || parsed.ptr == end) continue;
    std::from_chars(parsed.ptr + 1, end, pid);
    if (of_inode != inode) return pid;
  }
  return std::nullopt;
}

}  // namespace firn
