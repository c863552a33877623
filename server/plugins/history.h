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

// What became of the runs that a history was given. Each is in exactly one of these, or still in
// the queue.
struct HistoryCounts {
  int64_t written = 0;
  int64_t dropped = 0;  // the queue was full, or the history stopped
  int64_t lost = 0;     // the file could not be written

  friend bool operator==(const HistoryCounts&, const HistoryCounts&) = default;
};

// A record of who got which ids, one line a run, columns separated by a space:
//
//     <UTC ms> <tag, as in paths> <first> <count> <stride> <thrift|http|embedded> <client or ->
//
// 1. Callers never wait for the disk: they put lines into a queue of bounded size, under a lock
//    that is held for copying a line. A thread of its own writes them.
// 2. What does not fit into the queue is dropped; what cannot be written is lost. Both are counted,
//    told to the log, and noted in the file by a line "# <UTC ms> <n> runs are missing here" as
//    soon as it can be written again.
// 3. A full disk stops nobody: the writer goes on trying, and issuing goes on.
// 4. Stop writes what is queued and syncs it.
//
// A record, not a ledger: a crash loses what was queued in the last kFlushInterval. A forked child
// records nothing, and may destroy its copy. Thread-safe but for Start and Stop, which are one
// thread's.
class History {
 public:
  static constexpr Milliseconds kFlushInterval{100};
  static constexpr size_t kLineMax = 512;

  using LogLine = std::function<void(const std::string&)>;

  struct Options {
    HistoryFile::Options file{};
    size_t queue_bytes_max = 1 << 20;
    LogLine log{};  // takes one line without its end, on the writer's thread
  };

  // `clock` must outlive it.
  History(const Clock& clock, Options options);
  ~History();  // stops
  History(const History&) = delete;
  History& operator=(const History&) = delete;

  // Opens the file and starts the writer. A file that cannot be opened is a fault of configuration
  // here, later it is not.
  Status Start();

  // Queues a call's runs. `tag` in the form of paths.
  void Add(std::string_view tag, const Request& request, const Runs& runs);

  // Writes what is queued; later runs are dropped. Idempotent.
  void Stop();

  HistoryCounts counts() const;

 private:
  // Shared with the writer. Apart, because a forked child must leave it alone: the lock may be held
  // by a thread that the child does not have.
  struct Queue {
    std::mutex mutex;
    std::condition_variable wake;
    std::string lines;    // under mutex, as all below
    int64_t runs = 0;     // in `lines`
    int64_t dropped = 0;  // ever
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

  // The writer's, and before Start and after Stop the owner's.
  HistoryFile file_;
  int64_t noted_ = 0;     // missing runs that the file has a line about
  int64_t reported_ = 0;  // missing runs that the log has a line about
  std::optional<BootMs> reported_at_;
  std::string failure_;  // why runs were lost since then

  std::atomic<int64_t> written_{0};
  std::atomic<int64_t> lost_{0};
};

// Records a tag's runs as they were issued: `obfuscate` comes later. Thread-safe.
class HistoryPlugin final : public Plugin {
 public:
  static constexpr int kOrder = 300;

  HistoryPlugin(std::shared_ptr<History> history, std::string_view tag);

  std::string_view name() const override { return "history"; }
  int order() const override { return kOrder; }
  std::optional<Refusal> After(const Request& request, Runs& runs) override;

 private:
  const std::shared_ptr<History> history_;
  const std::string tag_;  // in the form of paths
};

}  // namespace firn
