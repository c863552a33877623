#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/talk.h"
#include "registry/servers/provider.h"

namespace firn {

// Keeps this server's node among the providers, with a report that is fresh.
//
//  1. Nothing is written without a session; a new session starts over.
//  2. The node is read first, with a watch, and again every recheck interval. Absent: created.
//     Ours but stale: set. A dead session's: replaced in one multi, so that clients see no gap.
//  3. A change of phase is written at once, any other change at most once a report interval. With
//     another phase the node is replaced and not set: so the folder changes with everything that
//     clients are told, and with nothing else (server_roll.h).
//  4. The first node is made at once. One that has gone (deleted by hand, with its session), or
//     whose write failed, is made again after a random part of a second, so that the servers of a
//     cluster do not come back all in one moment.
//  5. After Withdraw the node is deleted and never made again.
//
// A provider node is an announcement, never a permission: nothing here can cause a duplicate.
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class ProviderPublisher {
 public:
  static constexpr Milliseconds kRetryMax{1000};
  static constexpr Milliseconds kReportInterval{1000};
  static constexpr Milliseconds kRecheckInterval{45'000};

  ProviderPublisher(Coordinator& coordinator, Entropy& entropy, const Provider& provider);

  // What the node shall say from now on. Cheap when that is what it was told last.
  void Report(const ProviderReport& report);

  // Takes the server out of the list. `done` is called once: ok when the node is gone, otherwise
  // why that could not be seen (the end of the session will remove it).
  void Withdraw(std::function<void(Status)> done);

  // Does what is due. Call every 100 ms or so, and after session events.
  void Tick(BootMs now);

  // True while the registry holds the node as it was last written here.
  bool published() const { return published_; }

 private:
  Task<> DoWhatIsDue();
  Task<> Look();
  Task<> Send(std::vector<Write> writes);
  Task<> MakeParents();
  Task<> Erase();
  void Begin(Task<> task);
  void TellWithdrawn();
  bool WriteIsDue() const;
  bool PhaseStands() const;
  std::vector<Write> Replacement(int64_t version) const;
  void LookAgainSoon();

  Entropy& entropy_;
  const std::string path_;

  // What shall stand in the node, and what does.
  ProviderReport report_;
  std::string wanted_;  // report_ as it is written
  std::string held_;
  std::optional<ServerPhase> held_phase_{};
  int64_t held_version_ = 0;
  bool published_ = false;

  int64_t session_ = 0;
  bool look_ = true;  // the node has to be read before anything is written
  bool make_ = true;  // the pause before the node is made is over
  BootMs not_before_;
  BootMs last_write_;
  BootMs last_look_;
  bool withdrawing_ = false;               // the node is to go, or has gone
  std::function<void(Status)> withdrawn_;  // who has still to be told of it
  std::optional<Status> gone_;             // how it went

  CallbackGuard guard_;  // for the watch
  Talk talk_;
  Task<> task_;  // one conversation at a time
};

}  // namespace firn
