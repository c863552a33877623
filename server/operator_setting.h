#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/dir/folder_watch.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// The operator's offline setting for this server, by which clients use other servers. It is stored
// in the registry, in the configurator node of the server's address, so that it outlives the
// server, and clients see it without a request to the server.
//
//  1. The registry's setting applies from the first reading on; its changes are followed.
//  2. A setting made here applies at once. It is written repeatedly until the registry contains it;
//     until then the registry's setting is ignored.
//  3. Only `disabled` is changed, never the weight. Online is not written if there is no node.
//  4. Without a registry, a setting made here lasts as long as the process.
//
// Any thread may call Set, offline, weight and known; the rest belongs to the control thread. May
// be destroyed at any time; later answers are dropped.
class OperatorSetting {
 public:
  static constexpr Milliseconds kRetryMax{1'000};
  // After this time a write counts as seen, even without a notification.
  static constexpr Milliseconds kSeenWithin{60'000};

  // `address`: the one that clients connect to.
  OperatorSetting(Coordinator& coordinator, Entropy& entropy, std::string_view address);

  void Set(bool offline);
  bool offline() const;

  // Returns the weight in the registry, for protocols whose clients do not read the registry.
  int weight() const;

  // Returns false before the registry's setting was first read.
  bool known() const;

  // Does the work that is due. Call about every 50 ms.
  void Tick(BootMs now);

 private:
  void OnFolder();
  const Node* StoredNode() const;
  void Send(bool offline);
  void OnWritten(const WriteOutcome& outcome);
  void RetrySoon();

  Coordinator& coordinator_;
  Entropy& entropy_;
  const std::string address_, path_;
  FolderWatch folder_;
  bool busy_ = false;
  std::optional<bool> sent_{};              // setting of the write in progress, or of the last one
  std::optional<int64_t> written_version_;  // of the node, until the folder shows it
  BootMs now_, not_before_, written_at_;

  mutable std::mutex mutex_;  // guards the members below
  std::optional<bool> pending_{};
  bool offline_ = false;
  int weight_ = Configurator().weight;
  bool known_ = false;

  CallbackGuard guard_;
};

}  // namespace firn
