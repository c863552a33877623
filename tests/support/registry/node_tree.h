#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/base/units.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The nodes as a value: applies multis, without sessions, watches and threads. Copyable, so that a
// test can save and restore a tree. Thread-compatible.
//
// Sharp edge: the caller must have checked paths and writes with CheckPath and CheckWrites.
class NodeTree {
 public:
  // A change by a committed multi, for watches.
  struct Change {
    enum class Kind { kCreated, kSet, kErased };
    Kind kind;
    std::string path;
  };

  // Applies all of `writes` in order, each seeing the effects of the earlier ones, or none;
  // ephemeral nodes belong to `session`. Raises the zxid by one if it changed something. Appends to
  // `changes` if given.
  WriteOutcome Apply(std::vector<Write>&& writes, WallMs now, int64_t session,
                     std::vector<Change>* changes);

  // Sets a node's version as if the node had been set that often, and counts like newer ZooKeeper
  // servers: from -2 to 0. For tests.
  void SetVersion(std::string_view path, int64_t version);
  void SkipUnguarded() { skips_unguarded_ = true; }

  // Null when there is no such node. Valid until the next Apply.
  const Node* Find(std::string_view path) const;

  // The names of a node's children, sorted; null when there is no such node. Valid as above.
  const std::vector<std::string>* Children(std::string_view path) const;

  // Returns every node that belongs to `session`.
  std::vector<std::string> EphemeralsOf(int64_t session) const;

  // The number of the last multi that changed something. A restored tree has its old number, as a
  // restored ensemble does.
  int64_t zxid() const { return zxid_; }
  size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    Node node;
    std::vector<std::string> children;
  };
  struct Hash {
    using is_transparent = void;
    size_t operator()(std::string_view path) const { return std::hash<std::string_view>{}(path); }
  };
  using Entries = std::unordered_map<std::string, Entry, Hash, std::equal_to<>>;

  // How to revert one applied write.
  struct Undo {
    Write::Kind kind;
    std::string path;
    Node before;  // of a set or an erase
    int64_t parent_changed_at;
  };

  Status ApplyOne(Write& write, WallMs now, int64_t session, NodeStat& stat,
                  std::vector<Undo>& undo);
  Status Create(Write& write, WallMs now, int64_t session, NodeStat& stat);
  Status Set(Write& write, WallMs now, NodeStat& stat, Undo& undo);
  Status Erase(const Write& write, Undo& undo);
  void TakeBack(std::vector<Undo>& undo);
  int64_t ChangedAt(std::string_view path) const;  // 0: no such node
  void SetChangedAt(std::string_view path, int64_t zxid);

  // The node of a write, if it exists at the write's version.
  Result<Entries::iterator> Guarded(const Write& write);
  void Insert(const std::string& path, Node node);
  void Remove(Entries::iterator entry);

  Entries entries_;
  int64_t zxid_ = 0;
  bool skips_unguarded_ = false;
};

}  // namespace firn
