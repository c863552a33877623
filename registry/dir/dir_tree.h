#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/fork.h"
#include "common/base/unshared_file.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/dir/dir_changes.h"
#include "registry/dir/dir_files.h"
#include "registry/dir/dir_format.h"
#include "registry/dir/dir_owner.h"
#include "registry/dir/dir_place.h"
#include "registry/dir/dir_witness.h"
#include "registry/seam/coordinator.h"

namespace firn {

struct DirOptions {
  std::string path;                // absolute
  Milliseconds time_limit{5'000};  // of every request
  bool adopt = false;              // the directory was moved on purpose: record it anew
  std::string machine_id_file = "/etc/machine-id";
};

// The nodes of a directory registry, with verbs that wait: for the directory's lock, for the disk.
//
//     <path>/node, <path>/machines/0/7/node   the nodes, see dir_format.h
//     <path>/.firn/lock         flock(2): who holds it is alone with the tree
//     <path>/.firn/identity     which directory this is, see dir_place.h
//     <path>/.firn/journal      a multi that is committed and not wholly done
//     <path>/.firn/change       the number of the last change, for those who watch
//     <path>/.../.changed       its number when it touched this node or its children
//     <path>/.firn/sessions/N   locked by the process that session N belongs to
//
// Why a crash at any moment leaves each multi done or not done:
//
//  1. Everything happens under the lock, which the kernel drops when its holder dies.
//  2. A multi that leaves one file another: one rename decides. It is synced before, its folder
//     after, and only then is it answered.
//  3. Any other: the journal, which holds the whole outcome, is put in place by one rename, synced
//     before and after. From then on the multi is done: whoever takes the lock and finds a journal
//     repeats it before anything else, and repeating it gives the same files. It is removed, and
//     its removal synced, before the lock is let go; so no journal ever comes back over later
//     writes.
//  4. A failure before the deciding rename: nothing was done. From the rename on: kUnknown.
//  5. A session lives as long as the lock on its file. Whoever takes the tree's lock and can lock
//     another session's file erases that session's nodes before anything else.
//  6. Both locks go with the process that took them: its forked children have no copy of the files.
//
// Owned by one thread, except Abort.
class DirTree {
 public:
  // Makes the directory, and a registry of it when it is empty. Refused: a network file system, a
  // copy, a directory with something else in it, a new one where a process still works on another
  // that was at the path before.
  static Result<std::unique_ptr<DirTree>> Open(const DirOptions& options, const Clock& clock,
                                               Entropy& entropy);
  ~DirTree();  // ends the session; left to others when the lock is not to be had
  DirTree(const DirTree&) = delete;
  DirTree& operator=(const DirTree&) = delete;

  int64_t session() const { return session_; }

  // kUnavailable: the lock was not to be had in time, or the disk fails. kCorrupt: the node's file,
  // which is named, is damaged, or the directory is not the one that was opened. A damaged node can
  // be listed below, and set or erased where no version is asked for: what is set is another
  // creation.
  Result<Node> Read(const std::string& path);
  Result<std::vector<std::string>> List(const std::string& path);
  Status Sync();
  WriteOutcome Multi(const std::vector<Write>& writes);

  // A number that differs when something may have changed; ends dead sessions first.
  Result<uint64_t> Changes();

  // Makes a wait for the lock end with kUnavailable, now and for ever. Any thread.
  void Abort() { aborted_ = true; }

 private:
  class Lock;

  DirTree(const DirOptions& options, const Clock& clock, Entropy& entropy);

  Status Prepare();
  Result<UnsharedFile> OpenOwn(const std::string& path, int flags) const;
  Status CheckPlace();
  Status OpenSession();
  // What is left of a request's time once the lock has been waited for is the disk's.
  Milliseconds Patience() const { return options_.time_limit * 3 / 4; }
  Status AwaitLock(Milliseconds patience);
  Status Enter(Milliseconds patience);
  Status CheckReplaced() const;
  Status Recover();
  Status EndDeadSessions();
  Status EraseNodesOf(int64_t session);
  Status FindNodesOf(int64_t session, const std::string& path, std::vector<std::string>& found);

  bool IsThere(const std::string& path) const;
  Result<std::optional<Node>> Load(const std::string& path) const;
  Result<std::vector<std::string>> Names(const std::string& path) const;
  WriteOutcome Commit(const std::vector<NodeChange>& changes, std::vector<NodeStat> stats);
  Status CommitByJournal(const std::vector<NodeChange>& changes, Replaced* replaced);
  Status ApplyChange(const NodeChange& change, Replaced* replaced);
  Status StampParentOf(const std::string& path) const;
  std::string Folder(const std::string& path) const { return options_.path + FolderOfPath(path); }

  const DirOptions options_;
  const Clock& clock_;
  Entropy& entropy_;
  const std::string own_;  // <path>/.firn
  const ForkSentinel sentinel_;
  std::atomic<bool> aborted_ = false;

  DirOwner owner_;
  UnsharedFile lock_;
  UnsharedFile session_file_;
  DirChanges changes_;
  FileHandle folder_;
  DirIdentity identity_;
  std::optional<DirWitness> witness_;
  int64_t session_ = 0;
};

}  // namespace firn
