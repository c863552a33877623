#include "server/plugins/key_file.h"

#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace firn {
namespace {

constexpr size_t kFileBytesMax = 256;

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

int HexDigit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<SecretKey> ParseKey(std::string_view text) {
  while (!text.empty() && std::string_view(" \t\r\n").find(text.back()) != text.npos) {
    text.remove_suffix(1);
  }
  const Status wrong = Invalid("does not hold 32, 48 or 64 hexadecimal digits and nothing else");
  if (text.size() != 32 && text.size() != 48 && text.size() != 64) return wrong;
  std::vector<uint8_t> bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 0; i < text.size(); i += 2) {
    const int high = HexDigit(text[i]), low = HexDigit(text[i + 1]);
    if (high < 0 || low < 0) return wrong;
    bytes.push_back(static_cast<uint8_t>(high * 16 + low));
  }
  return SecretKey(std::move(bytes));
}

Result<SecretKey> Read(const std::string& path) {
  const OpenFile file(path);
  if (file.get() < 0) return SystemFailure("cannot be opened");
  FIRN_TRY(CheckOwnerAndMode(file.get()));
  char text[kFileBytesMax];
  const ssize_t size = read(file.get(), text, sizeof text);
  if (size < 0) return SystemFailure("cannot be read");
  Result<SecretKey> key = ParseKey({text, static_cast<size_t>(size)});
  explicit_bzero(text, sizeof text);
  return key;
}

}  // namespace

SecretKey& SecretKey::operator=(SecretKey&& other) noexcept {
  Wipe();
  bytes_ = std::move(other.bytes_);
  return *this;
}

void SecretKey::Wipe() {
  if (!bytes_.empty()) explicit_bzero(bytes_.data(), bytes_.size());
}

Result<SecretKey> ReadKeyFile(const std::string& path) {
  Result<SecretKey> key = Read(path);
  if (!key.ok()) return key.status().WithContext("the key file " + path);
  return key;
}

}  // namespace firn
