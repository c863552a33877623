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

// The narrow seam to whatever keeps the cluster's nodes: ZooKeeper, a directory, memory.
//
// A tree of nodes with small data and a version each; writes are guarded by versions and applied
// one after another. Nothing else is assumed: no clock, no lease. "/" is the cluster's own root
// node, wherever the tree lies; like any other it is there only once somebody has created it.
//
// Threads: owned by one control thread. Every verb is called there and returns at once; every
// answer, notice and session event is delivered inside Dispatch(), on that thread, never inside
// the verb that asked. So the code above needs no lock. An answer may call verbs, but neither
// Dispatch nor the destructor.
//
// Outcomes are three: done, not done, and Code::kUnknown, which says that a write may have been
// applied, or may still be. Every request is answered exactly once, within the implementation's
// own time limit, also when the connection is gone; the destructor drops what is unanswered.
// While disconnected nothing is sent: the answer is kUnavailable. A reading verb whose answer is
// lost says kUnavailable too. Requests of one coordinator are applied in the order of the calls,
// except a write that was answered kUnknown, which may be applied later than its successors.

struct NodeStat {
  int64_t version = 0;          // counts sets since the creation, wraps: see node_version.h
  int64_t created_zxid = 0;     // names this very creation: another node of the name has another
  WallMs modified;              // the registry's own clock, where there is one
  int64_t ephemeral_owner = 0;  // session that the node dies with; 0: persistent
  // Higher after each set and after each child that comes or goes. Those of all nodes of a registry
  // compare: what was changed later has the higher one.
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

// What became of a multi. With ok, `stats` has one entry a write, in order: of a check or an erase
// empty; of a create perhaps without `created_zxid`, `changed_zxid` and `modified` (0: not told,
// read it). Refused by the tree: `failed` is the index of the write that did not apply, the code
// says why (kConflict: version differs, or it exists already, or has children; kNotFound: no such
// node or parent; kInvalid: the parent is ephemeral; kDenied: not permitted), and nothing of the
// multi was done. Refused before it was sent: kUnavailable or kInvalid, `failed` is -1. With
// kUnknown, nothing is known.
struct WriteOutcome {
  Status status;
  int failed = -1;
  std::vector<NodeStat> stats;
};

// A session's life as its owner needs to know it. A new session after an expiry is opened by the
// coordinator itself; ephemeral nodes of the old one are gone or going, and its watches are lost.
struct SessionEvent {
  enum class Kind { kConnected, kDisconnected, kExpired, kDenied };
  Kind kind;
  int64_t session = 0;  // with kConnected: what NodeStat::ephemeral_owner will say

  friend bool operator==(const SessionEvent&, const SessionEvent&) = default;
};

class Coordinator {
 public:
  // Every implementation refuses more with kInvalid, so that none works where another would not.
  static constexpr size_t kNameBytesMax = 1000;          // one part of a path
  static constexpr size_t kPathBytesMax = 4000;          // a whole path
  static constexpr size_t kRequestBytesMax = 512 << 10;  // all paths and data of one multi
  static constexpr size_t kWritesMax = 2048;             // in one multi
  static constexpr size_t kWatchesMax = 8;               // on one node

  using ReadDone = std::function<void(Result<Node>)>;
  using ListDone = std::function<void(Result<std::vector<std::string>>)>;
  using SyncDone = std::function<void(Status)>;
  using WriteDone = std::function<void(WriteOutcome)>;
  // Called at most once, after the answer of the read that left the watch: something about the
  // node may have changed since, or the watch was lost. Carries no news itself: read again. A
  // notice speeds things up; whoever must not miss a change also reads now and then. Of one node
  // the last kWatchesMax watches are kept, so that such rereading piles up nothing.
  using Changed = std::function<void()>;

  Coordinator() = default;
  Coordinator(const Coordinator&) = delete;
  Coordinator& operator=(const Coordinator&) = delete;
  virtual ~Coordinator() = default;

  // A node's data and stat. kNotFound: it is not there (the watch then waits for its creation).
  // kCorrupt: it is there and damaged, where the registry can tell that (files); the rest of the
  // tree is as good as ever. Writes that ask for its version are refused with kCorrupt; a set of
  // any version puts another creation in its place. Any other failure leaves no watch.
  virtual void Read(const std::string& path, ReadDone done, Changed changed = {}) = 0;

  // Names of the children, sorted. kNotFound and watches as with Read; the watch is for children
  // that come or go, not for what they hold.
  virtual void List(const std::string& path, ListDone done, Changed changed = {}) = 0;

  // Reads after an ok answer see every write that was acknowledged to anybody before the call.
  virtual void Sync(const std::string& path, SyncDone done) = 0;

  // All of the writes or none, each seeing what the ones before it did.
  virtual void Multi(std::vector<Write> writes, WriteDone done) = 0;

  // Makes the places above "/" that a tree inside a shared ZooKeeper needs, persistent and empty;
  // those already there are left alone. "/" itself is not made. Ok where there is nothing above.
  virtual void PrepareRoot(SyncDone done) = 0;

  // Where session events go. Set before the first Dispatch, which tells the current state.
  virtual void OnSession(std::function<void(SessionEvent)> handler) = 0;

  // The session that ephemeral nodes made now would belong to, also while disconnected; 0 before
  // the first and between an expiry and the next.
  virtual int64_t session() const = 0;

  // Delivers what had arrived when it was called; waits up to `wait` for something when nothing
  // has. Returns how many answers, notices and events were delivered.
  virtual int Dispatch(Milliseconds wait) = 0;

  // Makes a Dispatch that waits return. The only verb that any thread may call.
  virtual void Wake() = 0;
};

}  // namespace firn
