#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/unshared_file.h"

namespace firn {

// A file of lines that is rotated when it is full. The current file is `path`; path.1, path.2 and
// so on are older, in this order. One thread at a time.
//
// 1. An append is written completely or not at all: after a failed write, the file is truncated to
//    its previous size.
// 2. After a failure, the next append re-opens the file if necessary. So appends succeed again as
//    soon as the disk has space.
// 3. A line that a crash has left incomplete remains in the file; the next line begins on a new
//    line.
// 4. The writing process locks the file, because two processes must not truncate and rotate the
//    same file.
class HistoryFile {
 public:
  struct Options {
    std::string path{};
    int64_t bytes_max = 64 << 20;  // an append goes to a new file when it would exceed this
    int files_max = 8;             // including the current one; at least 1
  };

  explicit HistoryFile(Options options) : options_(std::move(options)) {}
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

  // Opens or creates the file, with mode 0640, if it is not open. kUnavailable if that fails,
  // kConflict if another process writes it.
  Status Open();

  // Appends whole lines. kUnavailable if they were not written.
  Status Append(std::string_view lines);

  // Waits until all appended lines are on disk. kUnavailable if that is not certain.
  Status Sync();

  void Close() { file_ = {}; }

 private:
  Status MakeRoom(size_t bytes);
  Status Turn();
  Status Write(std::string_view bytes);
  void CutBack();
  std::string Numbered(int number) const;

  const Options options_;
  UnsharedFile file_;
  int64_t size_ = 0;   // up to the last complete append
  bool torn_ = false;  // the file does not end with a complete line
};

}  // namespace firn
