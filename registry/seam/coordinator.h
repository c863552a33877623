#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn {

// The interface to the store of the cluster's nodes: ZooKeeper, a directory, or memory.
//
// A tree of nodes, each with small data and a version. Writes are guarded by versions and applied
// one after another. Nothing else is assumed: no clock, no lease. "/" is the cluster's own root
// node, wherever the tree is stored; like any other node it exists only after it was created.
//
// Threads: owned by one control thread. Every verb is called there and returns at once. Every
// answer, notification and session event is delivered inside Dispatch(), on that thread, never
// inside the verb itself. So the code above needs no lock. An answer may call verbs, but neither
// Dispatch nor the destructor.
//
// A write has three outcomes: done, not done, and Code::kUnknown, which means that it may have been
// applied, or may still be. Every request is answered exactly once, within the implementation's
// time limit, also when the connection is lost; the destructor drops unanswered requests.
// While disconnected, nothing is sent, and the answer is kUnavailable. The same is the answer to a
// read whose reply was lost. Requests of one coordinator are applied in the order of the calls,
// except that a write that was answered kUnknown may be applied later than its successors.

struct NodeStat {
  int64_t version = 0;          // number of sets since the creation; wraps: see node_version.h
  int64_t created_zxid = 0;     // identifies the creation: a re-created node has another one
  WallMs modified;              // by the registry's clock, if it has one
  int64_t ephemeral_owner = 0;  // the session that the node ends with; 0: persistent
  // Rises with each set and with each child that is added or removed. Comparable between all nodes
  // of a registry: the node changed later has the higher number.
  int64_t changed_zxid = 0;

  friend bool operator==(const NodeStat&, const NodeStat&) = default;
};

struct Node {
  std::string data;
  NodeStat stat;
};

enum class Lifetime { kPersistent, kEphemeral };

// One step of a multi.
struct Write {
  enum class Kind { kCheck, kCreate, kSet, kErase };
  static constexpr int64_t kAnyVersion = -1;  // guards nothing

  static Write Check(std::string path, int64_t version) {
    return {Kind::kCheck, std::move(path), {}, version, Lifetime::kPersistent};
  }
  static Write Create(std::string path, std::string data, Lifetime lifetime) {
    return {Kind::kCreate, std::move(path), std::move(data), kAnyVersion, lifetime};
  }
  static Write Set(std::string path, std::string data, int64_t version) {
    return {Kind::kSet, std::move(path), std::move(data), version, Lifetime::kPersistent};
  }
  static Write Erase(std::string path, int64_t version) {
    return {Kind::kErase, std::move(path), {}, version, Lifetime::kPersistent};
  }

  Kind kind;
  std::string path;
  std::string data;
  int64_t version;
  Lifetime lifetime;
};

// The result of a multi. Ok: `stats` has one entry for each write, in order; empty for a check or
// an erase; for a create perhaps without `created_zxid`, `changed_zxid` and `modified` (0: unknown,
// read the node). Refused by the tree: `failed` is the index of the write that did not apply, the
// code says why (kConflict: the version differs, or the node exists already or has children;
// kNotFound: no such node or parent; kInvalid: the parent is ephemeral; kDenied: not permitted),
// and nothing was applied. Refused before it was sent: kUnavailable or kInvalid, and `failed` is
// -1. kUnknown: it may have been applied.
struct WriteOutcome {
  Status status;
  int failed = -1;
  std::vector<NodeStat> stats;
};

// A change of the session. After an expiry the coordinator opens a new session by itself; the old
// session's ephemeral nodes disappear, and its watches are lost.
struct SessionEvent {
  enum class Kind { kConnected, kDisconnected, kExpired, kDenied };
  Kind kind;
  int64_t session = 0;  // with kConnected: the future NodeStat::ephemeral_owner

  friend bool operator==(const SessionEvent&, const SessionEvent&) = default;
};

class Coordinator {
 public:
  // Limits of every implementation, so that all behave the same. Beyond them: kInvalid.
  static constexpr size_t kNameBytesMax = 1000;          // one part of a path
  static constexpr size_t kPathBytesMax = 4000;          // a whole path
  static constexpr size_t kRequestBytesMax = 512 << 10;  // all paths and data of one multi
  static constexpr size_t kWritesMax = 2048;             // in one multi
  static constexpr size_t kWatchesMax = 8;               // on one node

  using ReadDone = std::function<void(Result<Node>)>;
  using ListDone = std::function<void(Result<std::vector<std::string>>)>;
  using SyncDone = std::function<void(Status)>;
  using WriteDone = std::function<void(WriteOutcome)>;
  // Called at most once, after the answer of the read that set the watch: the node may have changed
  // since, or the watch was lost. It carries no data: read again. Watches only speed things up;
  // code that must not miss a change also polls. The last kWatchesMax watches of a node are kept,
  // so that polling does not accumulate them.
  using Changed = std::function<void()>;

  Coordinator() = default;
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  virtual ~Coordinator() = default;

  // Reads a node's data and stat. kNotFound: it does not exist (the watch waits for its creation).
  // kCorrupt: it is damaged, if the registry can detect that (files); the rest of the tree is
  // unaffected. Writes with a version of the node are refused with kCorrupt; a set of any version
  // replaces it, as a new creation. Any other failure sets no watch.
  virtual void Read(const std::string& path, ReadDone done, Changed changed = {}) = 0;

  // Lists the names of the children, sorted. kNotFound and watches as with Read; the watch is for
  // added and removed children, not for their data.
  virtual void List(const std::string& path, ListDone done, Changed changed = {}) = 0;

  // Reads after an ok answer see every write that was acknowledged to any client before the call.
  virtual void Sync(const std::string& path, SyncDone done) = 0;

  // Applies all of the writes or none; each sees the effects of those before it.
  virtual void Multi(std::vector<Write> writes, WriteDone done) = 0;

  // Creates the missing nodes above "/" that a tree inside a shared ZooKeeper needs, persistent and
  // empty. Does not create "/" itself. Ok if there is nothing above.
  virtual void PrepareRoot(SyncDone done) = 0;

  // Sets the handler of session events. Call before the first Dispatch, which reports the state.
  virtual void OnSession(std::function<void(SessionEvent)> handler) = 0;

  // Returns the session to which a new ephemeral node would belong, also while disconnected; 0
  // before the first session, and between an expiry and the next one.
  virtual int64_t session() const = 0;

  // Delivers everything that had arrived at the call; if nothing had, waits up to `wait`.
  // Returns the number of answers, notifications and events delivered.
  virtual int Dispatch(Milliseconds wait) = 0;

  // Makes a waiting Dispatch return. The only verb that any thread may call.
  virtual void Wake() = 0;
};

}  // namespace firn
