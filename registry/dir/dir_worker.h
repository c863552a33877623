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

// The thread on which a directory registry's requests wait for lock and disk, one after another. In
// between it polls the watched nodes. The control thread calls Ask; the answers arrive in `inbox`,
// in the order of the jobs, each notification after the answers that were read before it.
class DirWorker {
 public:
  struct Job {
    enum class Kind { kRead, kList, kSync, kMulti };
    uint64_t token = 0;
    Kind kind = Kind::kSync;
    std::string path{};
    std::vector<Write> writes{};
    // Watches to set; 0: none. A list of a missing node sets `node_watch`, a list of an existing
    // one sets `children_watch`.
    WatchTable::Id node_watch = 0;
    WatchTable::Id children_watch = 0;
  };
  using Event = std::variant<Answered, Noticed>;

  DirWorker(std::unique_ptr<DirTree> tree, Milliseconds poll_interval);
  ~DirWorker();  // drops jobs that have not begun
  DirWorker(const DirWorker&) = delete;
  DirWorker& operator=(const DirWorker&) = delete;

  void Ask(Job job);

  Inbox<Event> inbox;

 private:
  struct Watch {
    WatchKind kind;
    std::string path;
    std::string seen;  // the node's state, see Look
  };

  void Run();
  std::optional<Job> Next();
  Answer Do(Job& job);
  void LeaveWatch(WatchTable::Id id, WatchKind kind, const std::string& path, std::string seen);
  void CheckWatches();

  const Milliseconds poll_interval_;
  std::unique_ptr<DirTree> tree_;

  // The worker thread's own.
  std::map<WatchTable::Id, Watch> watches_;
  uint64_t changes_seen_ = 0;

  std::mutex mutex_;  // guards the next two members
  std::deque<Job> jobs_;
  bool stopping_ = false;
  std::condition_variable arrived_;

  std::thread thread_;
};

}  // namespace firn
