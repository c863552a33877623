#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include "common/base/fork.h"
#include "common/base/status.h"
#include "common/tag/tag_definition.h"
#include "common/time/clock.h"
#include "server/issue/plugin.h"
#include "server/plugins/history_file.h"

namespace firn {

// Counts of the runs that were added to a history. Each run is in exactly one count, or still in
// the queue.
struct HistoryCounts {
  int64_t written = 0;
  int64_t dropped = 0;  // the queue was full, or the history stopped
  int64_t lost = 0;     // the file could not be written

  friend bool operator==(const HistoryCounts&, const HistoryCounts&) = default;
};

// A record of which client got which ids. One line per run, with columns separated by a space:
//
//     <UTC ms> <tag, as in paths> <first> <count> <stride> <door> <client or ->
//
// 1. Callers never wait for the disk: they put lines into a queue of bounded size, under a lock
//    that is held only while a line is copied. A separate thread writes the lines.
// 2. Runs that do not fit into the queue are dropped; runs that cannot be written are lost. Both
//    are counted and logged. As soon as the file can be written again, a line "# <UTC ms> <n> runs
//    are missing here" records them there.
// 3. A full disk does not fail calls: ids are still issued, and the writer keeps retrying.
// 4. Stop writes the queued lines and syncs the file.
//
// The record may be incomplete: a crash loses the lines that were queued in the last
// kFlushInterval. A forked child records nothing, and may destroy its copy. Thread-safe except
// Start and Stop, which must be called by one thread.
class History {
 public:
  static constexpr Milliseconds kFlushInterval{100};
  static constexpr size_t kLineMax = 512;

  using LogLine = std::function<void(const std::string&)>;

  struct Options {
    HistoryFile::Options file{};
    size_t queue_bytes_max = 1 << 20;
    LogLine log{};  // receives one line without its end, on the writer's thread
  };

  // `clock` must outlive the object.
  History(const Clock& clock, Options options);
  ~History();  // stops
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Opens the file and starts the writer. Fails if the file cannot be opened. Later errors of the
  // file only lose runs.
  Status Start();

  // Queues a call's runs. `tag` must be encoded as in paths.
  void Add(std::string_view tag, const Request& request, const Runs& runs);

  // Writes the queued runs; later runs are dropped. Idempotent.
  void Stop();

  HistoryCounts counts() const;

 private:
  // Shared with the writer. A separate object, so that a forked child can avoid it: the lock may be
  // held by a thread that the child does not have.
  struct Queue {
    std::mutex mutex;
    std::condition_variable wake;
    std::string lines;    // under mutex, like the members below
    int64_t runs = 0;     // in `lines`
    int64_t dropped = 0;  // since the start
    bool running = false;
    bool hurry = false;  // the queue is half full
  };

  void Put(std::string_view lines, int64_t runs);
  void WriterLoop();
  void WriteOut(const std::string& lines, int64_t runs, int64_t dropped);
  Status AppendWithNote(const std::string& lines, int64_t missing);
  void Report(int64_t missing, bool at_once);

  const Clock& clock_;
  const size_t queue_bytes_max_;
  const LogLine log_;
  const ForkSentinel sentinel_;
  std::unique_ptr<Queue> queue_;
  std::thread writer_;

  // Used by the writer, and by the owner before Start and after Stop.
  HistoryFile file_;
  int64_t noted_ = 0;     // missing runs that are noted in the file
  int64_t reported_ = 0;  // missing runs that were logged
  std::optional<BootMs> reported_at_;
  std::string failure_;  // why runs were lost since reported_at_

  std::atomic<int64_t> written_{0};
  std::atomic<int64_t> lost_{0};
};

// Records a tag's runs before the plugin `obfuscate` changes them. Thread-safe.
class HistoryPlugin final : public Plugin {
 public:
  static constexpr int kOrder = 300;

  HistoryPlugin(std::shared_ptr<History> history, std::string_view tag);

  std::string_view name() const override { return "history"; }
  int order() const override { return kOrder; }
  Effect effect() const override { return Effect::kNone; }
  std::optional<Refusal> After(const Request& request, Runs& runs) override;

 private:
  const std::shared_ptr<History> history_;
  const std::string tag_;  // encoded as in paths
};

}  // namespace firn
