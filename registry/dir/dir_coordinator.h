#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/fork.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/dir/dir_tree.h"
#include "registry/seam/answers.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/watch_table.h"

namespace firn {

class DirWorker;

// A registry in a directory, for several processes of one host: DirTree with the coordinator's
// interface. A thread of its own waits for lock and disk.
//
// The session lasts as long as the process and this object: there is no expiry and no
// disconnection. After its owner's death, an ephemeral node disappears with the next access by any
// process. Watches are polled: a notification may be kPollInterval late. A request that the disk or
// another process's lock delays beyond the time limit is answered as lost, and may still be done.
//
// In a forked child no verb works; session and locks belong to the parent, and end with it.
class DirCoordinator final : public Coordinator {
 public:
  static constexpr Milliseconds kPollInterval{50};
  static constexpr size_t kPendingMax = 4096;  // further requests are refused: kUnavailable

  // Fails like DirTree::Open; waits for the lock. `clock` and `entropy` must outlive this and be
  // thread-safe.
  static Result<std::unique_ptr<DirCoordinator>> Open(DirOptions options, const Clock& clock,
                                                      Entropy& entropy);
  ~DirCoordinator() override;

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void List(const std::string& path, ListDone done, Changed changed = {}) override;
  void Sync(const std::string& path, SyncDone done) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  void PrepareRoot(SyncDone done) override { Sync("/", std::move(done)); }
  void OnSession(std::function<void(SessionEvent)> handler) override;
  int64_t session() const override { return session_; }
  int Dispatch(Milliseconds wait) override;
  void Wake() override;

 private:
  using Token = RequestTable::Token;
  struct Watching {
    WatchTable::Id node_id;      // used if the node is missing
    WatchTable::Id children_id;  // 0: of a read
    std::string path;
    Changed changed;
  };

  DirCoordinator(std::unique_ptr<DirTree> tree, Milliseconds time_limit, const Clock& clock);

  bool RefuseUnready(Status checked, AnyDone done);
  Token Expect(AnyDone done);
  int ReportOwn();
  int ReportOverdue();
  void KeepWatching(Token token, const Answer& answer);

  const Clock& clock_;
  const Milliseconds time_limit_;
  const ForkSentinel sentinel_;
  const int64_t session_;
  std::function<void(SessionEvent)> on_session_;
  bool told_session_ = false;

  RequestTable requests_;
  std::unordered_map<Token, Watching> watching_;
  WatchTable watches_;
  std::vector<std::pair<AnyDone, Status>> refused_;  // to be answered in the next Dispatch

  std::unique_ptr<DirWorker> worker_;
};

}  // namespace firn
