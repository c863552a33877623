#include "client/source/list_cache.h"

#include <atomic>
#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/source/list_text.h"
#include "common/base/cat.h"
#include "common/base/files.h"

namespace firn {
namespace {

Status CheckOwner(int fd, const std::string& path) {
  struct stat seen {};
  if (fstat(fd, &seen) != 0) return FileFailure("read the state of", path, errno);
  if (!S_ISREG(seen.st_mode)) return Denied(path + " is not a file");
  if (seen.st_uid != geteuid()) return Denied(path + " belongs to another user");
  if ((seen.st_mode & (S_IWGRP | S_IWOTH)) != 0) return Denied("other users can write " + path);
  return {};
}

uint64_t NextNumber() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

ListCache::ListCache(std::string path, std::string registry)
    : path_(std::move(path)), registry_(std::move(registry)), number_(NextNumber()) {}

Result<ServerList> ListCache::Read() const {
  FIRN_ASSIGN(const FileHandle file, FileHandle::Open(path_, O_RDONLY | O_NOFOLLOW | O_NONBLOCK));
  FIRN_TRY(CheckOwner(file.fd(), path_));
  FIRN_ASSIGN(const std::string text, ReadAll(file.fd(), kListTextBytesMax, path_));
  Result<KeptList> kept = ParseList(text);
  if (!kept.ok()) return kept.status().WithContext(path_);
  if (kept->registry != registry_) return Conflict(path_ + " is of " + kept->registry);
  return std::move(kept->list);
}

std::string ListCache::draft() const { return Cat(path_, ".", getpid(), "-", number_, ".new"); }

Status ListCache::Write(const ServerList& list) const {
  return ReplaceFile(path_, {.path = draft()}, FormatList({registry_, list}));
}

}  // namespace firn
