#include "server/plugins/history_file.h"

#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"

namespace firn {
namespace {

Status Failure(const char* verb, const std::string& path) {
  return Unavailable(Cat("cannot ", verb, " ", path, ": ", std::strerror(errno)));
}

}  // namespace

Status HistoryFile::Open() {
  if (file_.fd() >= 0) return {};
  FIRN_ASSIGN(UnsharedFile file, UnsharedFile::From([this] {
                return OpenRegular(options_.path, O_RDWR | O_CREAT | O_APPEND, 0640);
              }));
  if (flock(file.fd(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return Failure("lock", options_.path);
    return Conflict(options_.path + " is written by another process; give each a file of its own");
  }
  struct stat info {};
  if (fstat(file.fd(), &info) != 0) return Failure("examine", options_.path);
  char last = '\n';
  torn_ = info.st_size > 0 && (pread(file.fd(), &last, 1, info.st_size - 1) != 1 || last != '\n');
  size_ = info.st_size;
  file_ = std::move(file);
  return {};
}

Status HistoryFile::Append(std::string_view lines) {
  FIRN_TRY(Open());
  FIRN_TRY(MakeRoom(lines.size()));
  if (torn_) {
    FIRN_TRY(Write("\n"));
    torn_ = false;
  }
  return Write(lines);
}

Status HistoryFile::MakeRoom(size_t bytes) {
  if (size_ == 0 || size_ + static_cast<int64_t>(bytes) <= options_.bytes_max) return {};
  return Turn();
}

// Renames the oldest file first, so that a failure in between loses only the oldest file.
Status HistoryFile::Turn() {
  Close();
  for (int number = options_.files_max - 1; number > 0; --number) {
    const std::string from = Numbered(number - 1), to = Numbered(number);
    if (std::rename(from.c_str(), to.c_str()) != 0 && errno != ENOENT) {
      return Failure("rename", from);
    }
  }
  if (options_.files_max == 1 && unlink(options_.path.c_str()) != 0 && errno != ENOENT) {
    return Failure("remove", options_.path);
  }
  return Open();
}

Status HistoryFile::Write(std::string_view bytes) {
  size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t wrote = write(file_.fd(), bytes.data() + done, bytes.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const Status failure = Failure("write", options_.path);
      if (done > 0) CutBack();
      Close();
      return failure;
    }
    done += static_cast<size_t>(wrote);
  }
  size_ += static_cast<int64_t>(bytes.size());
  return {};
}

// If the truncation fails, the torn end is detected when the file is opened again.
void HistoryFile::CutBack() {
  if (ftruncate(file_.fd(), size_) != 0) torn_ = true;
}

Status HistoryFile::Sync() {
  if (file_.fd() < 0) return Unavailable(options_.path + " is not open");
  return fdatasync(file_.fd()) == 0 ? Status() : Failure("sync", options_.path);
}

std::string HistoryFile::Numbered(int number) const {
  return number == 0 ? options_.path : Cat(options_.path, ".", number);
}

}  // namespace firn
