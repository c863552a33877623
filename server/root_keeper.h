#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "common/time/entropy.h"
#include "registry/operate/backup.h"
#include "registry/operate/restore_memory.h"
#include "registry/operate/root_settings.h"
#include "registry/seam/async_registry.h"
#include "server/node/kept_root.h"
#include "server/store/store_thread.h"

namespace firn {

// A server's copy of its cluster's settings for a restore: the root node's settings, and the
// reserved and retired machine ids. Stored in the state folder, which `firn restore --from` reads.
//
//  1. It reads the root node and the node above the racks in each new session, after each
//     notification, and every 30 to 60 s. If one of them has changed, and every hour, it reads the
//     records of all machine ids.
//  2. A reading counts only if all of it succeeded and the root node was the same before and after
//     it, is not frozen, and belongs to this cluster. So data that are lost do not
//     replace the copy.
//  3. A reading that is older than the copy (RootSettings::OlderThan) does not replace it: the
//     registry may have been put back to a backup, and no claim may have noticed yet.
//  4. If the file cannot be written, it is written again within an hour.
//  5. While the root node is frozen, it also reads what an unfinished restore has left, for the
//     command that completes it.
//  6. Its own thread reads and writes the state folder, so that a stalled disk delays no claim.
//     Until it has read the folder, the server prints no restore command, and the keeper does not
//     read the registry.
//
// Owned by the control thread, except functions marked thread-safe.
class RootKeeper {
 public:
  static constexpr Milliseconds kRetry{1'000};
  static constexpr Milliseconds kRereadMin{30'000};
  static constexpr Milliseconds kReadAllEvery{3'600'000};

  // `stem`: as for ReadKeptRoot; empty: nothing is stored. The references must outlive this.
  RootKeeper(Coordinator& coordinator, Entropy& entropy, std::string stem);

  // Does the work that is due. `uuid`: the cluster's; empty if unknown.
  void Tick(BootMs now, const std::string& uuid);

  // Whether the cluster's files were read, if there can be any. Thread-safe.
  bool loaded() const { return stem_.empty() || (loads_done_ > 0 && loads_done_ == loads_); }
  // Whether the state folder contains the settings. Thread-safe.
  bool saved() const { return settings() != nullptr && !unsaved_; }
  // Thread-safe; null if nothing is known.
  std::shared_ptr<const RootSettings> settings() const;
  // The cluster's data in the state folder at the start. Thread-safe; never null.
  std::shared_ptr<const Backup> kept() const;
  // What an unfinished restore has left in the frozen registry. Thread-safe; null if there is none.
  std::shared_ptr<const RestoreMemory> unfinished() const;

 private:
  Task<> ReadRoot();
  Task<> ReadUnfinished(ClusterMeta root);
  Task<Result<RootSettings>> ReadAll(RootSettings settings);
  // Starts to read the files of a cluster; false if the thread accepts no work.
  bool Load(const std::string& uuid);
  void Take(RootSettings settings);

  Entropy& entropy_;
  const std::string stem_;
  std::string uuid_;
  int64_t session_ = 0;
  // Set by watches, whose notifications may come after this object's end.
  const std::shared_ptr<bool> stale_ = std::make_shared<bool>(true);
  bool whole_ = false;  // every record was read in this session
  BootMs not_before_, reread_at_, read_all_at_;

  mutable std::mutex mutex_;
  std::shared_ptr<const RootSettings> settings_;                     // under mutex_
  std::shared_ptr<const Backup> kept_ = std::make_shared<Backup>();  // likewise
  std::shared_ptr<const RestoreMemory> unfinished_;                  // likewise

  std::atomic<bool> unsaved_{false};           // the file is older than settings_
  std::atomic<int> loads_{0}, loads_done_{0};  // reads of the folder: started, ended

  StoreThread thread_;            // uses the state folder; destroyed before the members above
  AsyncRegistry async_registry_;  // outlives task_
  Task<> task_;
};

}  // namespace firn
