#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/callback_guard.h"
#include "registry/seam/coordinator.h"
#include "registry/servers/provider.h"

namespace firn {

// Maintains this server's provider node with a current report.
//
//  1. Nothing is written without a session; a new session starts over.
//  2. The node is read first, with a watch, and again every recheck interval. A missing node is
//     created, a stale one set. A node of a dead session is replaced in one multi, so that clients
//     see no gap.
//  3. A change of phase is written at once, any other change at most once in a report interval. A
//     new phase replaces the node instead of setting it. So the folder changes with everything that
//     clients have to know, and with nothing else (server_roll.h).
//  4. The first node is created at once. If the node disappears (deleted by hand, or with its
//     session), or a write fails, it is re-created after a random delay of up to 1 s, so that the
//     servers of a cluster do not all return at the same time.
//  5. After Withdraw the node is deleted and never re-created.
//
// A provider node is an announcement, not a permission: no error here can cause a duplicate id.
// Owned by the control thread. May be destroyed at any time; later answers are dropped.
class ProviderPublisher {
 public:
  static constexpr Milliseconds kRetryMax{1000};
  static constexpr Milliseconds kReportInterval{1000};
  static constexpr Milliseconds kRecheckInterval{45'000};

  ProviderPublisher(Coordinator& coordinator, Entropy& entropy, const Provider& provider);

  // Sets the report to publish. Cheap if it equals the previous one.
  void Report(const ProviderReport& report);

  // Removes the server from the list. `done` is called once: ok if the node is gone, otherwise why
  // that is unknown (the node disappears when the session ends).
  void Withdraw(std::function<void(Status)> done);

  // Does everything that is due. Call it about every 100 ms, and after session events.
  void Tick(BootMs now);

  // Whether the registry contains the node as last written here.
  bool published() const { return published_; }

 private:
  Task<> DoDueWork();
  Task<> ReadNode();
  Task<> Send(std::vector<Write> writes);
  Task<> MakeParents();
  Task<> Erase();
  void Begin(Task<> task);
  void ReportWithdrawn();
  bool WriteIsDue() const;
  bool PhaseIsStored() const;
  std::vector<Write> Replacement(int64_t version) const;
  void ReadAgainSoon();

  Entropy& entropy_;
  const std::string path_;

  // The node's wanted and actual contents.
  ProviderReport report_;
  std::string wanted_;  // report_ as text
  std::string held_;
  std::optional<ServerPhase> held_phase_{};
  int64_t held_version_ = 0;
  bool published_ = false;

  int64_t session_ = 0;
  bool look_ = true;  // the node has to be read before the next write
  bool make_ = true;  // the delay before the node is created is over
  BootMs not_before_;
  BootMs last_write_;
  BootMs last_look_;
  bool withdrawing_ = false;               // the node is to be deleted, or has been
  std::function<void(Status)> withdrawn_;  // the callback of Withdraw, until it is called
  std::optional<Status> gone_;             // the outcome

  CallbackGuard guard_;  // for the watch
  AsyncRegistry async_registry_;
  Task<> task_;  // one conversation at a time
};

}  // namespace firn
