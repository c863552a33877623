#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/time/entropy.h"
#include "registry/operate/backup.h"
#include "registry/operate/root_settings.h"
#include "registry/seam/async_registry.h"
#include "server/node/kept_root.h"
#include "server/store/store_thread.h"

namespace firn {

// What a server knows of its cluster besides the tags it serves, for a restore: the root node's
// settings, and the reserved and retired machine ids. Kept in the state folder, which is a document
// of `firn restore --from`.
//
//  1. It reads the root node and the node above the racks in each new session, after each notice,
//     and every 30 to 60 s. Where one of them has changed, and every hour, it reads the
//     record of every machine id.
//  2. A reading counts only if all of it succeeded, and the root node was the same before and
//     after it, is not frozen and is of this cluster. So lost data replace nothing.
//  3. A root node that is older than the known one of the same era replaces nothing either.
//  4. A file that cannot be written is written again after an hour at most.
//  5. Its own thread reads and writes the state folder, so that a stalled disk delays no claim. No
//     command is printed, and nothing is read from the registry, before the folder was read.
//
// Owned by the control thread, but for those marked thread-safe.
class RootKeeper {
 public:
  static constexpr Milliseconds kRetry{1'000};
  static constexpr Milliseconds kRereadMin{30'000};
  static constexpr Milliseconds kReadAllEvery{3'600'000};

  // `stem`: as of ReadKeptRoot; empty: nothing is kept. The references must outlive it.
  RootKeeper(Coordinator& coordinator, Entropy& entropy, std::string stem);

  // Does what is due. `uuid`: the cluster, empty while it is unknown.
  void Tick(BootMs now, const std::string& uuid);

  // Whether the cluster's files were read, if any are kept. Thread-safe.
  bool loaded() const { return stem_.empty() || (loads_done_ > 0 && loads_done_ == loads_); }
  // Thread-safe; null while nothing is known.
  std::shared_ptr<const RootSettings> settings() const;
  // What the state folder contained of the cluster at the start. Thread-safe; never null.
  std::shared_ptr<const Backup> kept() const;

 private:
  Task<> ReadRoot();
  Task<Result<RootSettings>> ReadAll(RootSettings settings);
  // Starts to read the files of a cluster; false: the thread takes no work.
  bool Load(const std::string& uuid);
  void Take(RootSettings settings);

  Entropy& entropy_;
  const std::string stem_;
  std::string uuid_;
  int64_t session_ = 0;
  // Shared with watches, whose notices may come after this object has ended.
  const std::shared_ptr<bool> stale_ = std::make_shared<bool>(true);
  bool whole_ = false;  // every record was read in this session
  int64_t machines_version_ = 0;
  BootMs not_before_, reread_at_, read_all_at_;

  mutable std::mutex mutex_;
  std::shared_ptr<const RootSettings> settings_;                     // under mutex_
  std::shared_ptr<const Backup> kept_ = std::make_shared<Backup>();  // likewise

  std::atomic<bool> unsaved_{false};           // the file is older than settings_
  std::atomic<int> loads_{0}, loads_done_{0};  // readings of the folder, by the thread in order

  StoreThread thread_;            // uses the state folder; ends before what it works with
  AsyncRegistry async_registry_;  // outlives the task
  Task<> task_;
};

}  // namespace firn
