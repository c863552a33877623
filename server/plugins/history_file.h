#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/base/unshared_file.h"

namespace firn {

// A file of lines that is turned over when it is full: `path`, then path.1, path.2, ... with the
// highest number the oldest. One thread at a time.
//
// 1. What is appended is there as a whole or not at all: after a failed write the file is cut back
//    to where it was.
// 2. Every failure leaves it ready for the next append, which opens the file anew if need be. So
//    it works again as soon as there is room again.
// 3. A line that a crash has torn keeps its place; the next one begins on a line of its own.
// 4. It is locked by whoever writes it: cutting back and turning over are no work for two.
class HistoryFile {
 public:
  struct Options {
    std::string path{};
    int64_t bytes_max = 64 << 20;  // an append goes to a new file when it would exceed this
    int files_max = 8;             // the one being written included; at least 1
  };

  explicit HistoryFile(Options options) : options_(std::move(options)) {}
  HistoryFile(const HistoryFile&) = delete;
  HistoryFile& operator=(const HistoryFile&) = delete;

  // Opens or makes the file, mode 0640, if it is not open. kUnavailable when that fails, kConflict
  // when another process writes it.
  Status Open();

  // Appends whole lines. kUnavailable when they are not there.
  Status Append(std::string_view lines);

  // Waits until everything appended is on the disk. kUnavailable when that is not known.
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
  int64_t size_ = 0;   // up to the last whole append
  bool torn_ = false;  // something that is not a whole line stands at the end
};

}  // namespace firn
