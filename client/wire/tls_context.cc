#include "client/wire/tls_context.h"

#include <sys/stat.h>

#include "client/wire/tls_credentials.h"
#include "common/base/cat.h"

namespace firn::client {

// A replaced or changed file differs in time, size or inode.
std::string TlsContext::Stamp() const {
  std::string stamp;
  for (const std::string& path : {options_.ca, options_.cert, options_.key}) {
    struct stat file {};
    if (path.empty() || stat(path.c_str(), &file) != 0) file = {};
    stamp += Cat(file.st_dev, ":", file.st_ino, ":", file.st_size, ":", file.st_mtim.tv_sec, ":",
                 file.st_mtim.tv_nsec, ";");
  }
  return stamp;
}

Status TlsContext::Load() {
  const std::lock_guard lock(mutex_);
  // Computed before the files are read, so that a later change is noticed next time.
  std::string stamp = Stamp();
  if (in_use_ != nullptr && stamp == stamp_) return {};
  FIRN_ASSIGN(in_use_, TlsCredentials::Read(options_));
  stamp_ = std::move(stamp);
  return {};
}

Result<std::unique_ptr<TlsTalk>> TlsContext::Begin(const std::string& server,
                                                   const std::string& host) {
  const Status loaded = Load();
  const std::lock_guard lock(mutex_);
  if (in_use_ == nullptr) return loaded;
  return std::make_unique<TlsTalk>(in_use_, server, options_.name.empty() ? host : options_.name);
}

}  // namespace firn::client
