#include "common/base/secret_file.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

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

bool IsOwnGroup(gid_t group) {
  if (group == getegid()) return true;
  std::vector<gid_t> groups(static_cast<size_t>(std::max(0, getgroups(0, nullptr))));
  const int count = getgroups(static_cast<int>(groups.size()), groups.data());
  groups.resize(static_cast<size_t>(std::max(0, count)));
  return std::find(groups.begin(), groups.end(), group) != groups.end();
}

// A Secret that Kubernetes mounts for a pod with an fsGroup belongs to root and that group, since
// the kubelet cannot give it to the container's user.
bool IsForOwnGroup(const struct stat& info) {
  constexpr mode_t kAllButGroupRead = 037;
  return geteuid() != 0 && info.st_uid == 0 && (info.st_mode & kAllButGroupRead) == 0 &&
         IsOwnGroup(info.st_gid);
}

// Examines the open file, not its path, so that the file that is read is the one that was checked.
Status CheckOwnerAndMode(int file) {
  struct stat info {};
  if (fstat(file, &info) != 0) return SystemFailure("cannot be examined");
  if (!S_ISREG(info.st_mode)) return Denied("is not a regular file");
  if (info.st_uid != geteuid() && info.st_uid != 0) return Denied("belongs to another user");
  if ((info.st_mode & 077) != 0 && !IsForOwnGroup(info)) {
    return Denied("can be read by group or others; run chmod 600 on it");
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
  return Invalid(Cat("is larger than the maximum of ", kSecretFileBytesMax, " bytes"));
}

}  // namespace

Result<std::string> ReadSecretFile(const std::string& path) {
  Result<std::string> secret = Read(path);
  if (!secret.ok()) return secret.status().WithContext(path);
  return secret;
}

Result<Credentials> ReadCredentials(const std::string& path) {
  FIRN_ASSIGN(const std::string text, ReadSecretFile(path));
  const std::string line = text.substr(0, text.find_first_of("\r\n"));
  const size_t colon = line.find(':');
  if (colon == std::string::npos || colon == 0) {
    return Invalid(path + ": must hold one line user:password");
  }
  return Credentials{line.substr(0, colon), line.substr(colon + 1)};
}

Status CheckSecretFile(const std::string& path) { return Check(OpenFile(path)).WithContext(path); }

}  // namespace firn
