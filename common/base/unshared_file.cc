#include "common/base/unshared_file.h"

#include <unistd.h>

namespace firn {

Result<UnsharedFile> UnsharedFile::Open(const std::string& path, int flags, mode_t mode) {
  return From([&] { return FileHandle::Open(path, flags, mode); });
}

Result<UnsharedFile> UnsharedFile::From(const std::function<Result<FileHandle>()>& open) {
  Status failure;
  UnsharedFile opened = Of([&] {
    Result<FileHandle> file = open();
    if (!file.ok()) failure = file.status();
    return file.ok() ? file->Release() : -1;
  });
  FIRN_TRY(failure);
  return opened;
}

UnsharedFile::Held::~Held() {
  set.Close(fd, [this] { close(fd); });
}

}  // namespace firn
