#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "registry/dir/dir_format.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The effect of a multi on a directory's nodes, computed before any file is changed: each write
// sees the files and the effects of the writes before it. Thread-compatible; used once, under the
// directory's lock. A damaged node (`load` returns kCorrupt) can only be set or erased without a
// version; a set replaces it as a new creation.
//
class DirDraft {
 public:
  using Load = std::function<Result<std::optional<Node>>(const std::string& path)>;
  using Names = std::function<Result<std::vector<std::string>>(const std::string& path)>;
  struct Stamp {
    WallMs now;
    int64_t created_zxid;  // of every node created
    int64_t session;       // of every ephemeral node created
    int64_t changed_zxid;  // of every node created or set
  };

  DirDraft(Load load, Names names, Stamp stamp)
      : load_(std::move(load)), names_(std::move(names)), stamp_(stamp) {}

  // Returns the first failure as the tree's refusal, or the `stats` of every write.
  WriteOutcome Apply(const std::vector<Write>& writes);

  // Returns the changes: nodes to write, parents first, then nodes to remove, children first.
  std::vector<NodeChange> Changes() const;

 private:
  Status ApplyOne(const Write& write, NodeStat& stat);
  Status Create(const Write& write, NodeStat& stat);
  Result<Node> Guarded(const Write& write);
  Node NewNode() const;
  Result<std::optional<Node>> Find(const std::string& path);
  Result<bool> HasChildren(const std::string& path);

  const Load load_;
  const Names names_;
  const Stamp stamp_;
  std::map<std::string, std::optional<Node>> over_;  // by path; empty: removed
};

}  // namespace firn
