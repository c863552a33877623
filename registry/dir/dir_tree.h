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
  bool adopt = false;              // the directory was moved on purpose: record its new identity
  std::string machine_id_file = "/etc/machine-id";
};

// The nodes of a directory registry. Its methods block: for the directory's lock and for the disk.
//
//     <path>/node, <path>/machines/0/7/node   the nodes, see dir_format.h
//     <path>/.firn/lock         flock(2): its holder has exclusive access to the tree
//     <path>/.firn/identity     the directory's identity, see dir_place.h
//     <path>/.firn/journal      a multi that is committed but not complete
//     <path>/.firn/change       the number of the last change, for watches
//     <path>/.../.changed       the number of the last change to this node or its children
//     <path>/.firn/sessions/N   locked by the process of session N
//
// Why a multi is applied completely or not at all, despite a crash at any moment:
//
//  1. Everything happens under the lock, which the kernel releases when its holder dies.
//  2. If a multi changes one file, one rename decides. The file is synced before, its folder after,
//     and only then is the multi answered.
//  3. Otherwise, the journal with the whole outcome is put in place by one rename, synced before
//     and after. From then on the multi is done: a process that takes the lock and finds a journal
//     repeats it first, and repeating it gives the same files. The journal is removed, and its
//     removal synced, before the lock is released, so that an old journal never reappears after
//     later writes.
//  4. After a failure before the deciding rename, nothing was done. From the rename on: kUnknown.
//  5. A session lives as long as the lock on its file. A process that takes the tree's lock and can
//     lock another session's file erases that session's nodes first.
//  6. Both locks end with the process that took them: forked children have no copy of the files.
//
// Owned by one thread, except Abort.
class DirTree {
 public:
  // Creates the directory, and makes it a registry if it is empty. Refuses a network file system, a
  // copy, a directory with other contents, and a new directory if a process still uses an earlier
  // one at the same path.
  static Result<std::unique_ptr<DirTree>> Open(const DirOptions& options, const Clock& clock,
                                               Entropy& entropy);
  ~DirTree();  // ends the session; if the lock is not available, the next process does
  DirTree(const DirTree&) = delete;
  DirTree& operator=(const DirTree&) = delete;

  int64_t session() const { return session_; }

  // kUnavailable: the lock was not available in time, or the disk fails. kCorrupt: the node's file,
  // which is named, is damaged, or the directory is not the one that was opened. The children of a
  // damaged node can be listed. It can be set or erased without a version: a set makes a new
  // creation.
  Result<Node> Read(const std::string& path);
  Result<std::vector<std::string>> List(const std::string& path);
  Status Sync();
  WriteOutcome Multi(const std::vector<Write>& writes);

  // Ends dead sessions, then returns a number that differs if anything may have changed.
  Result<uint64_t> Changes();

  // Makes every wait for the lock end with kUnavailable, now and later. Any thread.
  void Abort() { aborted_ = true; }

 private:
  class Lock;

  DirTree(const DirOptions& options, const Clock& clock, Entropy& entropy);

  Status Prepare();
  Result<UnsharedFile> OpenOwn(const std::string& path, int flags) const;
  Status CheckPlace();
  Status OpenSession();
  // The time to wait for the lock; the rest of a request's time limit is for the disk.
  Milliseconds Patience() const { return options_.time_limit * 3 / 4; }
  Status AwaitLock(Milliseconds patience);
  Status Enter(Milliseconds patience);
  Status CheckReplaced() const;
  Status Recover();
  Status EndDeadSessions();
  Status EraseNodesOf(int64_t session);
  Status FindNodesOf(int64_t session, const std::string& path, std::vector<std::string>& found);

  Result<bool> IsThere(const std::string& path) const;
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
