#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "common/base/fnv.h"
#include "common/time/clock.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/watch_table.h"
#include "tests/support/registry/node_tree.h"

namespace firn {

class MemoryCoordinator;

// A registry in one process's memory, for tests and simulations: the tree, with the actions of an
// operator and data loss. Coordinators attach to it and must be destroyed before it.
//
// Deterministic: every write is applied in the verb that asks for it, so the order of the calls is
// the order of the writes; numbers count up from one. Thread-safe, but nothing is deterministic
// between threads.
class MemoryTree {
 public:
  using Image = NodeTree;

  // Stamps nodes with `clock`, which must outlive the tree.
  explicit MemoryTree(const Clock& clock) : clock_(clock) {}

  // Ends a session as a registry does after its timeout: its ephemeral nodes are deleted, and its
  // coordinator, if it still exists, is notified and gets a new session. Unknown ids are ignored.
  void Expire(int64_t session);

  // Ends the sessions whose end is at `now` or before it, and removes them from `ends`.
  void ExpireUntil(BootMs now, std::vector<std::pair<int64_t, BootMs>>& ends);

  // Saves a backup, and restores it as a rolled-back ensemble does: nodes, versions and zxids
  // repeat; every session ends, unless the backup is said to contain it. Ephemeral nodes in the
  // image remain until their session, though long ended, is expired.
  enum class Sessions { kEnd, kStay };
  Image Save() const;
  void Load(Image image, Sessions sessions = Sessions::kEnd);

  // Loads an empty image: the data were lost.
  void Wipe() { Load({}); }

  // Sets a node's version as after that many sets; from -2 on to 0, as newer servers count.
  void SetVersion(std::string_view path, int64_t version);
  void SkipUnguarded();

  // Reads without a session, for oracles.
  std::optional<Node> Peek(std::string_view path) const;

  // A digest of every write that has reached the tree, with its time, in order. Two runs with the
  // same digest sent the same writes to the registry.
  uint64_t digest() const { return digest_; }

 private:
  friend class MemoryCoordinator;

  // Each must be called with mutex_ held.
  int64_t NewSession() { return ++last_session_; }
  WriteOutcome Apply(std::vector<Write>&& writes, int64_t session);
  void Digest(const std::vector<Write>& writes, int64_t session);
  void EraseEphemerals(int64_t session);

  const Clock& clock_;
  mutable std::mutex mutex_;  // guards the members below, and each coordinator's inbox and watches
  NodeTree nodes_;
  std::vector<MemoryCoordinator*> attached_;
  std::vector<NodeTree::Change> changes_;  // Apply's, kept for its capacity
  int64_t last_session_ = 0;
  uint64_t digest_ = kFnvSeed;
};

// One client of a MemoryTree. Always connected: FaultyCoordinator adds faults.
class MemoryCoordinator final : public Coordinator {
 public:
  explicit MemoryCoordinator(MemoryTree& tree);

  // Ends the session, as a clean stop does, unless it was abandoned.
  ~MemoryCoordinator() override;

  // From now on the destructor does not end the session, as for a killed process.
  void Abandon() { abandoned_ = true; }

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void List(const std::string& path, ListDone done, Changed changed = {}) override;
  void Sync(const std::string& path, SyncDone done) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  void PrepareRoot(SyncDone done) override;
  void OnSession(std::function<void(SessionEvent)> handler) override;
  int64_t session() const override { return session_; }
  int Dispatch(Milliseconds wait) override;
  void Wake() override;

 private:
  friend class MemoryTree;

  struct ReadAnswer {
    ReadDone done;
    Result<Node> result;
  };
  struct ListAnswer {
    ListDone done;
    Result<std::vector<std::string>> result;
  };
  struct SyncAnswer {
    SyncDone done;
    Status status;
  };
  struct WriteAnswer {
    WriteDone done;
    WriteOutcome outcome;
  };
  using Delivery =
      std::variant<ReadAnswer, ListAnswer, SyncAnswer, WriteAnswer, Changed, SessionEvent>;
  // Each must be called with the tree's mutex held.
  Status Ready(Status checked) const;
  void Notice(const NodeTree::Change& change);
  void Watch(WatchKind kind, const std::string& path, Changed changed);
  void PushAll(WatchTable::Fired fired);
  void LoseSession();
  void Push(Delivery delivery);

  void Deliver(Delivery& delivery);

  MemoryTree& tree_;
  std::function<void(SessionEvent)> on_session_;
  bool abandoned_ = false;
  int64_t session_ = 0;          // as last reported to the owner; requests under an older one fail
  std::vector<Delivery> batch_;  // being delivered; kept for its capacity

  // Guarded by tree_.mutex_.
  int64_t granted_session_ = 0;  // as the tree knows it
  WatchTable watches_;
  std::vector<Delivery> inbox_;
  bool woken_ = false;
  std::condition_variable arrived_;
};

}  // namespace firn
