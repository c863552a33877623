#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A copy of one folder's nodes that follows the registry: providers, configurators, tags.
//
//  1. A notification causes a new read of the node that it names. All nodes are read again every 30
//     to 60 s and in each new session, since a watch may be lost silently.
//  2. Notifications are merged for 100 ms from the first one, so that a rolling restart causes few
//     reads.
//  3. `changed` is called when all reads have been answered and the copy differs since its last
//     call; the first time also if the folder is empty or missing.
//  4. A failed read keeps the last good copy and is retried after a second.
//
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class FolderWatch {
 public:
  static constexpr size_t kNodesMax = 10'000;  // further nodes are ignored
  static constexpr Milliseconds kMerge{100};
  static constexpr Milliseconds kRetry{1000};
  static constexpr Milliseconds kRereadMin{30'000};

  FolderWatch(Coordinator& coordinator, Entropy& entropy, std::string path,
              std::function<void()> changed);

  // Does everything that is due. Call it about every 50 ms.
  void Tick(BootMs now);

  // Reads one node again, which may be new, and calls `changed` even if nothing differs.
  void ReadAgain(const std::string& name);

  // The copy, by node name. Complete only after the first call of `changed`.
  const std::map<std::string, Node>& nodes() const { return nodes_; }
  bool whole() const { return told_; }
  // Whether nodes of the folder were ignored.
  bool cut() const { return cut_; }
  const std::string& path() const { return path_; }

 private:
  void Reread();
  void OnListed(const Result<std::vector<std::string>>& names);
  void ReadNode(const std::string& name);
  void OnRead(const std::string& name, const Result<Node>& node);
  void Keep(const std::string& name, const Node& node);
  void Forget(const std::string& name);
  void Noticed();
  void Failed();
  void NotifyWhenComplete();

  Coordinator& coordinator_;
  Entropy& entropy_;
  const std::string path_;
  const std::function<void()> changed_;

  std::map<std::string, Node> nodes_;
  std::map<std::string, bool> stale_;  // every name in the folder; true: to be read
  bool list_stale_ = true;
  bool listed_ = false;
  bool differs_ = true;
  bool told_ = false;
  bool cut_ = false;
  int in_flight_ = 0;

  int64_t session_ = 0;
  BootMs now_;
  BootMs refresh_at_;
  BootMs reread_at_;

  CallbackGuard guard_;
};

}  // namespace firn
