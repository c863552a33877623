#include "common/base/secret_file.h"

#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cat.h"

namespace firn {
namespace {

class OpenFile {
 public:
  explicit OpenFile(const std::string& path)
      : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {}
  ~OpenFile() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  int get() const { return descriptor_; }

 private:
  const int descriptor_;
};

Status SystemFailure(const char* what) {
  return {errno == ENOENT ? Code::kNotFound : Code::kDenied,
          std::string(what) + ": " + std::strerror(errno)};
}

// Looks at the open file, not at its path: what was checked is what is read.
Status CheckOwnerAndMode(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) return SystemFailure("cannot be examined");
  if (!S_ISREG(info.st_mode)) return Denied("is not a regular file");
  if (info.st_uid != geteuid() && info.st_uid != 0) return Denied("belongs to another user");
  if ((info.st_mode & 077) != 0) {
    return Denied("can be used by group or others; mend it with chmod 600");
  }
  return {};
}

Status Check(const OpenFile& file) {
  if (file.get() < 0) return SystemFailure("cannot be opened");
  return CheckOwnerAndMode(file.get());
}

Result<std::string> Read(const std::string& path) {
  const OpenFile file(path);
  FIRN_TRY(Check(file));
  std::string text(kSecretFileBytesMax + 1, '\0');
  const ssize_t size = read(file.get(), text.data(), text.size());
  if (size < 0) return SystemFailure("cannot be read");
  text.resize(static_cast<size_t>(size));
  if (text.size() <= kSecretFileBytesMax) return text;
  explicit_bzero(text.data(), text.size());
  return Invalid(Cat("is larger than ", kSecretFileBytesMax, " bytes"));
}

}  // namespace

Result<std::string> ReadSecretFile(const std::string& path) {
  Result<std::string> secret = Read(path);
  if (!secret.ok()) return secret.status().WithContext(path);
  return secret;
}

Status CheckSecretFile(const std::string& path) { return Check(OpenFile(path)).WithContext(path); }

}  // namespace firn
