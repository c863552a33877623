#include "registry/claim/posix_state_folder.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <utility>

#include <fcntl.h>
#include <pthread.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/files.h"
#include "registry/file_birth.h"

namespace firn {
namespace {

constexpr int kReopensMax = 8;

// The locked files of this process, which a forked child closes at once: as long as it had them
// open it would hold its parent's lock beyond the parent's death. The kernel's hook takes no
// argument, so the table is the process's.
constexpr int kLockedMax = 64;
std::array<std::atomic<int>, kLockedMax> locked_files;  // descriptor + 1; 0: free

void CloseLockedFiles() {
  for (auto& file : locked_files) {
    const int fd = file.exchange(0) - 1;
    if (fd >= 0) close(fd);
  }
}

Status CloseInChild(int fd) {
  static std::once_flag once;
  static int failed = 0;
  std::call_once(once, [] { failed = pthread_atfork(nullptr, nullptr, CloseLockedFiles); });
  if (failed != 0) return Unavailable("pthread_atfork failed");
  for (auto& file : locked_files) {
    int free = 0;
    if (file.compare_exchange_strong(free, fd + 1)) return {};
  }
  return Exhausted("a process has at most 64 state folders");
}

void CloseLocked(int fd) {
  for (auto& file : locked_files) {
    int ours = fd + 1;
    if (file.compare_exchange_strong(ours, 0)) break;
  }
  close(fd);
}

Status Failed(const std::string& what, const std::string& path) {
  return FileFailure(what, path, errno);
}

// Nobody else's business, and no way to somewhere else.
Result<FileHandle> OpenOwn(const std::string& path, int flags) {
  return FileHandle::Open(path, flags | O_NOFOLLOW, 0600);
}

Status WriteAt(int fd, size_t offset, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return Failed("write", path);
    offset += static_cast<size_t>(written);
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

// At most `bytes_max` bytes; one more is kCorrupt.
Result<std::string> ReadAll(int fd, size_t bytes_max, const std::string& path) {
  std::string bytes(bytes_max + 1, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got =
        pread(fd, bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return Failed("read", path);
    if (got == 0) break;
    size += static_cast<size_t>(got);
  }
  if (size > bytes_max) return Corrupt(path + " is too long");
  bytes.resize(size);
  return bytes;
}

Status MakeFolder(const std::string& folder) {
  for (size_t at = 1; at != std::string::npos;) {
    at = folder.find('/', at + 1);
    const std::string part = folder.substr(0, at);
    if (mkdir(part.c_str(), 0750) != 0 && errno != EEXIST) return Failed("make", part);
  }
  return {};
}

}  // namespace

Result<std::string> BootId() {
  const std::string path = "/proc/sys/kernel/random/boot_id";
  const Result<FileHandle> file = OpenOwn(path, O_RDONLY);
  if (!file.ok()) return Unavailable(file.status().message());
  FIRN_ASSIGN(std::string id, ReadAll(file->fd(), 64, path));
  while (!id.empty() && id.back() == '\n') id.pop_back();
  if (id.empty()) return Unavailable(path + " is empty");
  return id;
}

PosixStateFolder::PosixStateFolder(const std::string& folder, const std::string& stem)
    : folder_(folder),
      grant_path_(folder + "/" + stem + ".grant"),
      hint_path_(folder + "/" + stem + ".properties") {}

PosixStateFolder::~PosixStateFolder() {
  if (grant_ >= 0 && !sentinel_.InChild()) CloseLocked(grant_);
}

Result<std::unique_ptr<PosixStateFolder>> PosixStateFolder::Open(const std::string& folder,
                                                                 const std::string& stem) {
  if (folder.empty()) return Invalid("the state folder has no name");
  FIRN_TRY(MakeFolder(folder));
  std::unique_ptr<PosixStateFolder> opened(new PosixStateFolder(folder, stem));
  FIRN_ASSIGN(opened->identity_.boot_id, BootId());
  FIRN_TRY(opened->OpenGrant());
  return opened;
}

// The lock is on an inode, not on a name: a file that was removed or replaced between open and
// lock is let go, and the name tried again.
Status PosixStateFolder::OpenGrant() {
  for (int i = 0; i < kReopensMax; ++i) {
    FIRN_ASSIGN(FileHandle file, OpenOwn(grant_path_, O_RDWR | O_CREAT));
    if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EINTR) continue;
      if (errno != EWOULDBLOCK) return Failed("lock", grant_path_);
      return Conflict("another process runs on the state folder " + folder_ + ": " + grant_path_ +
                      " is locked");
    }
    struct stat locked {};
    struct stat named {};
    if (fstat(file.fd(), &locked) != 0) return Failed("look at", grant_path_);
    const bool same = stat(grant_path_.c_str(), &named) == 0 && named.st_ino == locked.st_ino &&
                      named.st_dev == locked.st_dev;
    if (!same) continue;
    if (!S_ISREG(locked.st_mode)) return Invalid(grant_path_ + " is not a file");
    FIRN_TRY(CloseInChild(file.fd()));
    grant_ = file.Release();
    identity_.device = locked.st_dev;
    identity_.inode = locked.st_ino;
    identity_.born_ns = BirthOf(grant_);
    return CheckSize(locked.st_size);
  }
  return Conflict(grant_path_ + " is being replaced all the time");
}

// Empty, or blank as far as it goes: new. Anything else of another size says that there was a
// claim, and must not look like a first start; whoever writes a grant of his own makes it whole.
Status PosixStateFolder::CheckSize(off_t size) {
  if (size == off_t{kGrantBytes}) return {};
  wrong_size_ = size > off_t{kGrantBytes};
  if (!wrong_size_) {
    FIRN_ASSIGN(const std::string bytes, ReadAll(grant_, kGrantBytes, grant_path_));
    wrong_size_ = bytes.find_first_not_of(' ') != std::string::npos;
  }
  return wrong_size_ ? Status() : Preallocate();
}

// Real blocks, so that a full disk cannot get in the way of an overwrite.
Status PosixStateFolder::Preallocate() {
  if (ftruncate(grant_, 0) != 0) return Failed("truncate", grant_path_);
  FIRN_TRY(WriteAt(grant_, 0, std::string(kGrantBytes, ' '), grant_path_));
  if (fsync(grant_) != 0) return Failed("sync", grant_path_);
  return SyncFolder(folder_);
}

Status PosixStateFolder::CheckOwner() const {
  if (sentinel_.InChild()) return Denied("a forked child has no part in " + grant_path_);
  return {};
}

Result<std::string> PosixStateFolder::ReadGrant() {
  FIRN_TRY(CheckOwner());
  if (wrong_size_) return Corrupt("the grant file " + grant_path_ + " has a wrong size");
  return ReadAll(grant_, kGrantBytes, grant_path_);
}

Status PosixStateFolder::WriteGrant(size_t offset, std::string_view bytes, Durability durability) {
  FIRN_TRY(CheckOwner());
  if (offset + bytes.size() > kGrantBytes) Die("a write beyond the end of the grant file");
  if (wrong_size_) FIRN_TRY(Preallocate());
  wrong_size_ = false;
  FIRN_TRY(WriteAt(grant_, offset, bytes, grant_path_));
  if (durability == Durability::kDisk && fdatasync(grant_) != 0) return Failed("sync", grant_path_);
  return {};
}

Status PosixStateFolder::RemoveGrant() {
  FIRN_TRY(CheckOwner());
  if (unlink(grant_path_.c_str()) != 0 && errno != ENOENT) return Failed("remove", grant_path_);
  return {};
}

Result<std::string> PosixStateFolder::ReadHint() {
  FIRN_TRY(CheckOwner());
  FIRN_ASSIGN(const FileHandle file, OpenOwn(hint_path_, O_RDONLY));
  return ReadAll(file.fd(), kHintBytesMax, hint_path_);
}

Status PosixStateFolder::ReplaceHint(std::string_view text) {
  FIRN_TRY(CheckOwner());
  return ReplaceFile(hint_path_, {.path = hint_path_ + ".new"}, text);
}

}  // namespace firn
