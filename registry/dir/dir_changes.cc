#include "registry/dir/dir_changes.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "common/base/files.h"
#include "registry/dir/dir_files.h"
#include "registry/dir/dir_format.h"

namespace firn {
namespace {

std::string FileIn(const std::string& folder) { return folder + "/" + kChangedFile; }

}  // namespace

Status DirChanges::Start(const std::string& path) {
  FIRN_ASSIGN(file_, open_(path));
  return {};
}

uint64_t DirChanges::last() const {
  uint64_t number = 0;
  static_cast<void>(pread(file_.fd(), &number, sizeof number, 0));
  return number;
}

int64_t DirChanges::Begin(WallMs now) {
  number_ = std::max(last() + 1, static_cast<uint64_t>(std::max<int64_t>(0, now.ms())));
  return static_cast<int64_t>(number_);
}

void DirChanges::Count() { static_cast<void>(pwrite(file_.fd(), &number_, sizeof number_, 0)); }

Status DirChanges::Stamp(const std::string& folder) const {
  const std::string path = FileIn(folder);
  FIRN_ASSIGN(const UnsharedFile file, open_(path));
  if (pwrite(file.fd(), &number_, sizeof number_, 0) == sizeof number_) return {};
  return FileFailure("write", path, errno);
}

int64_t DirChanges::StampOf(const std::string& folder) {
  const Result<std::string> bytes = ReadFile(FileIn(folder), sizeof(int64_t));
  int64_t number = 0;
  if (bytes.ok() && bytes->size() == sizeof number) {
    std::memcpy(&number, bytes->data(), sizeof number);
  }
  return number;
}

void DirChanges::Erase(const std::string& folder) { unlink(FileIn(folder).c_str()); }

}  // namespace firn
