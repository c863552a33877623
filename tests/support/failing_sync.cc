// To be preloaded (LD_PRELOAD): writes reach the page cache, but syncing them to the disk fails, as
// on a dying disk. The file that FAILING_SYNC names contains the folder below which this happens;
// without the file nothing fails.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

namespace {

using Sync = int(int);

// Reads the file's text, with a final zero; returns false if the file is missing.
bool ReadFolder(char* text, size_t size) {
  const char* const told = getenv("FAILING_SYNC");
  const int fd = told == nullptr ? -1 : open(told, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return false;
  const ssize_t got = read(fd, text, size - 1);
  close(fd);
  text[got < 0 ? 0 : got] = 0;
  return got > 0;
}

bool IsToFail(int fd) {
  char folder[4096], link[64], path[4096];
  if (!ReadFolder(folder, sizeof folder)) return false;
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = readlink(link, path, sizeof path - 1);
  if (length <= 0) return false;
  path[length] = 0;
  return strncmp(path, folder, strlen(folder)) == 0;
}

int FailOr(const char* name, int fd) {
  if (IsToFail(fd)) {
    errno = EIO;
    return -1;
  }
  return reinterpret_cast<Sync*>(dlsym(RTLD_NEXT, name))(fd);
}

}  // namespace

extern "C" int fsync(int fd) { return FailOr("fsync", fd); }
extern "C" int fdatasync(int fd) { return FailOr("fdatasync", fd); }
