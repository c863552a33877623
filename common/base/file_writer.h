#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/files.h"
#include "common/base/fork.h"
#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// Replaces files on a thread of its own, so that nobody waits for the disk but that thread: a disk
// can stand still for minutes. Thread-safe, but made and destroyed by one thread.
//
// Of several contents that wait for one path the last counts. In a forked child nothing is written.
class FileWriter {
 public:
  // Does the work, and may take as long as it likes.
  using Replacer = std::function<Status(const std::string& path, std::string_view bytes)>;

  // Starts the thread, so that a host without threads to spare refuses the start and not the first
  // file: throws std::system_error. An empty `replace` is ReplaceFile, with a draft beside the
  // file.
  explicit FileWriter(Replacer replace = {});
  // Waits until everything is written, but at most so long for a disk that stands still: then the
  // thread is left behind.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  static constexpr Milliseconds kEndPatience{1'000};

  // Begins to make `bytes` the file at `path`. Never waits.
  void Replace(const std::string& path, std::string bytes);

  // The last failure since this was called last; ok when there was none.
  Status TakeFailure();

 private:
  struct Shared;

  static Status ReplaceDurably(const std::string& path, std::string_view bytes);
  static void Work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // with the thread, which may outlive this
  const ForkSentinel sentinel_;
  std::thread thread_;
};

}  // namespace firn
