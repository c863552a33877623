#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "common/base/fork.h"
#include "common/time/clock.h"
#include "registry/seam/answers.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/inbox.h"
#include "registry/seam/watch_table.h"
#include "registry/zk/name_probe.h"
#include "registry/zk/zk_handle.h"

namespace firn {

struct ZkOptions {
  std::string hosts;                  // "host:port,host:port"
  std::string root;                   // the path of "/": "/firn/<cluster>"
  Milliseconds session_time{10'000};  // requested; the servers may change it
  Milliseconds time_limit{5'000};     // of every request
  Milliseconds reopen_after{1'000};   // retry interval after a handle could not be opened
  std::string auth{};                 // "user:password"; empty: every client may write the nodes
  bool shared = false;                // every client may write its persistent nodes in any case
};

// A registry in ZooKeeper.
//
//  1. All events of the client library go into one inbox, with the number of their handle, and are
//     handled in Dispatch. Events of an older handle are dropped: its requests were answered when
//     it was abandoned.
//  2. A request that is not answered within the time limit is answered here: kUnknown or
//     kUnavailable. Its late answer is dropped, but it may still take effect.
//  3. After an expiry the handle is closed and another one opened at once.
//  4. Two to four seconds after a disconnection a second handle connects and reads the root node.
//     Servers whose data were wiped or restored from a backup refuse, without an EXPIRED, every
//     client that has seen newer data; they accept the second handle. A root node that is missing,
//     re-created or older than the one read last proves the loss: the first handle is closed at
//     once and its session reported as expired. A read that fails proves nothing and is repeated.
//     Otherwise the first handle keeps its session, unless it stays disconnected for two and a half
//     session times while the second one is connected.
//  5. Handles are opened and closed in Dispatch and in the destructor, never in a callback. A
//     handle is opened only right after the names of its servers were resolved, because Dispatch
//     must not wait for an unreachable name service.
//
// With credentials, only their owner may change the nodes that it creates, and every client may
// read them: an audit needs no password, and the data are not secret. Debian's client library has
// no TLS.
//
// In a forked child no verb works and the destructor closes nothing: session and connection belong
// to the parent.
class ZkCoordinator final : public Coordinator {
 public:
  static constexpr size_t kPendingMax = 4096;  // further requests are refused: kUnavailable

  // The second handle opens this long after a disconnection, plus a part of the spread that depends
  // on the session, so that a thousand servers that lost one ensemble do not connect at once.
  static constexpr Milliseconds kProbeAfter{2'000};
  static constexpr Milliseconds kProbeSpread{2'000};
  // The session time that the second handle requests. The client library retries after a third of
  // it, so a registry that returns is noticed soon even if the first handle's sessions are long.
  static constexpr Milliseconds kProbeSession{3'000};

  // Opens nothing yet: the first Dispatch does. `clock` must outlive this.
  ZkCoordinator(ZkOptions options, const Clock& clock);
  ~ZkCoordinator() override;

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void List(const std::string& path, ListDone done, Changed changed = {}) override;
  void Sync(const std::string& path, SyncDone done) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  void PrepareRoot(SyncDone done) override;
  void OnSession(std::function<void(SessionEvent)> handler) override;
  int64_t session() const override { return session_; }
  int Dispatch(Milliseconds wait) override;
  void Wake() override { inbox_->Wake(); }

 private:
  using Token = RequestTable::Token;
  struct Tagged {
    uint64_t handle;
    ZkHandle::Event event;
  };
  struct Handle {
    std::unique_ptr<ZkHandle> zk{};
    uint64_t number = 0;
  };
  // A read with a watch. On a missing node, ZooKeeper sets a watch only for an existence request.
  struct Watching {
    WatchKind kind;
    std::string path;
    Changed changed;
    WatchTable::Id id = 0;  // of the watch requested last
    int rounds = 0;
  };

  Status Ready(Status checked) const;
  void Refuse(AnyDone done, Status status);
  void SentOrRefused(Token token, Status sent);
  Status Ask(Token token, Watching& watching);
  Status AskExistence(Token token, Watching& watching);
  void MultiAt(std::vector<Write> writes, WriteDone done);
  void PrepareFrom(size_t end, SyncDone done);
  std::string Absolute(const std::string& path) const;

  // The root node as read last. Another creation or an older version means that data were lost.
  struct RootSeen {
    int64_t created_zxid = 0;
    int64_t version = 0;
  };

  ReadDone NotingRoot(ReadDone done);
  int Tend();
  void OpenHandle(Handle& handle, Milliseconds session_time);
  bool disconnected() const { return handle_.zk != nullptr && !connected_ && session_ != 0; }
  BootMs ProbeAt() const;
  void TendProbe(BootMs now);
  void AskProbe(BootMs now);
  void RetryProbe(BootMs now);
  void EndProbe();
  Milliseconds Patience(Milliseconds wait) const;
  int ReportRefused();
  int ReportOverdue();

  int OnEvent(Tagged& tagged);
  int OnState(const SessionEvent& state);
  int OnProbe(Tagged& tagged);
  int OnProbeRead(const Result<Node>& root);
  int OnAnswered(Answered& answered);
  bool KeepWatching(Token token, Answer& answer);
  int LoseSession(const char* why, SessionEvent::Kind kind);
  int ReportState(SessionEvent event);
  static int NotifyAll(const WatchTable::Fired& fired);

  const ZkOptions options_;
  const Clock& clock_;
  const ForkSentinel sentinel_;
  std::function<void(SessionEvent)> on_session_;

  RequestTable requests_;
  std::unordered_map<Token, Watching> watching_;
  WatchTable watches_;
  std::vector<std::pair<AnyDone, Status>> refused_;  // to be answered in the next Dispatch

  bool connected_ = false;
  int64_t session_ = 0;
  BootMs disconnected_since_;
  BootMs open_at_;
  std::optional<RootSeen> root_seen_;
  std::optional<BootMs> probe_due_;   // when probe_ retries its read
  std::optional<BootMs> give_up_at_;  // the first handle's session, once probe_ has read the root
  uint64_t last_handle_ = 0;

  // Outlives the handles, which write to it until they are closed.
  std::unique_ptr<Inbox<Tagged>> inbox_ = std::make_unique<Inbox<Tagged>>();
  std::unique_ptr<NameProbe> names_;
  Handle handle_;
  Handle probe_;
};

}  // namespace firn
