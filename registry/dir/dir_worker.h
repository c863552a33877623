#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <variant>
#include <vector>

#include "registry/dir/dir_tree.h"
#include "registry/seam/answers.h"
#include "registry/seam/inbox.h"
#include "registry/seam/watch_table.h"

namespace firn {

// The thread on which a directory registry's verbs wait for lock and disk, one after another, and
// which looks after the watched nodes in between. Ask is the control thread's; the answers are in
// `inbox`, in the order of the jobs, each notice behind the answers that were read before it.
class DirWorker {
 public:
  struct Job {
    enum class Kind { kRead, kList, kSync, kMulti };
    uint64_t token = 0;
    Kind kind = Kind::kSync;
    std::string path{};
    std::vector<Write> writes{};
    // Watches to leave with a read: 0 for none. A list of a node that is not there leaves
    // `node_watch`, one of a node that is leaves `children_watch`.
    WatchTable::Id node_watch = 0;
    WatchTable::Id children_watch = 0;
  };
  using Event = std::variant<Answered, Noticed>;

  DirWorker(std::unique_ptr<DirTree> tree, Milliseconds poll_interval);
  ~DirWorker();  // what has not begun is not done
  DirWorker(const DirWorker&) = delete;
  DirWorker& operator=(const DirWorker&) = delete;

  void Ask(Job job);

  Inbox<Event> inbox;

 private:
  struct Watch {
    WatchKind kind;
    std::string path;
    std::string seen;  // what the node looked like
  };

  void Run();
  std::optional<Job> Next();
  Answer Do(Job& job);
  void LeaveWatch(WatchTable::Id id, WatchKind kind, const std::string& path, std::string seen);
  void LookAfterWatches();

  const Milliseconds poll_interval_;
  std::unique_ptr<DirTree> tree_;

  // The worker thread's own.
  std::map<WatchTable::Id, Watch> watches_;
  uint64_t changes_seen_ = 0;

  std::mutex mutex_;  // guards the two below
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::condition_variable arrived_;

  std::thread thread_;
};

}  // namespace firn
