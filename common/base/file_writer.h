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

// Replaces files on a separate thread, because a disk can hang for minutes. Thread-safe, but
// constructed and destroyed by one thread.
//
// If several contents wait for one path, only the last is written. A forked child writes nothing.
class FileWriter {
 public:
  // Replaces a file. May block for any time.
  using Replacer = std::function<Status(const std::string& path, std::string_view bytes)>;

  // Starts the thread, so that a host that cannot create threads fails here, with
  // std::system_error, and not at the first file. An empty `replace` is ReplaceFile, with a draft
  // in the same folder.
  explicit FileWriter(Replacer replace = {});
  // Waits until everything is written. Abandons the thread after kEndPatience without progress.
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  static constexpr Milliseconds kEndPatience{1'000};

  // Starts to replace the file at `path` by `bytes`. Never waits.
  void Replace(const std::string& path, std::string bytes);

  // Returns the last failure since the previous call, or ok.
  Status TakeFailure();

 private:
  struct Shared;

  static Status ReplaceDurably(const std::string& path, std::string_view bytes);
  static void Work(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;  // shared with the thread, which may outlive this
  const ForkSentinel sentinel_;
  std::thread thread_;
};

}  // namespace firn
