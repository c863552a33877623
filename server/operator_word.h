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

// What operators have said of this server: whether clients shall stay away. It stands in the
// registry, as the configurator of the server's address, so that it outlives the server and clients
// see it without asking the server.
//
//  1. What the registry says counts from the first reading on, and its changes are followed.
//  2. What is said here counts at once. It is written, again and again, until the registry has it;
//     until then what the registry says does not count.
//  3. Only `disabled` is changed, never the weight. Online where nothing stands is not written.
//  4. Without a registry, what is said here lasts as long as the process.
//
// Say, offline and known may be called by any thread; the rest belongs to the control thread. May
// be destroyed at any time; later answers are dropped.
class OperatorWord {
 public:
  static constexpr Milliseconds kRetryMax{1'000};
  // After this a write counts as seen, though no notice of it came.
  static constexpr Milliseconds kSeenWithin{60'000};

  // `address` is the one that clients connect to.
  OperatorWord(Coordinator& coordinator, Entropy& entropy, std::string_view address);

  void Say(bool offline);
  bool offline() const;

  // False until the registry has been asked for the first time.
  bool known() const;

  // Does what is due. Call every 50 ms or so.
  void Tick(BootMs now);

 private:
  void OnFolder();
  const Node* Stands() const;
  void Send(bool offline);
  void OnWritten(const WriteOutcome& outcome);
  void TryAgainSoon();

  Coordinator& coordinator_;
  Entropy& entropy_;
  const std::string address_, path_;
  FolderWatch folder_;
  bool busy_ = false;
  std::optional<bool> sent_{};              // what the write under way says
  std::optional<int64_t> written_version_;  // of the node, until the folder shows it
  BootMs now_, not_before_, written_at_;

  mutable std::mutex mutex_;  // guards what follows
  std::optional<bool> said_{};
  bool offline_ = false;
  bool known_ = false;

  CallbackGuard guard_;
};

}  // namespace firn
