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

// What a multi makes of a directory's nodes, worked out before a file is touched: each write sees
// the files and, over them, what the writes before it did. Thread-compatible; used under the
// directory's lock and thrown away. A node that `load` calls damaged (kCorrupt) is replaced by a
// set of no version, as another creation, and erased by an erase of none; nothing else is done to
// it.
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

  // The first failure as the tree's refusal; with ok, `stats` of every write.
  WriteOutcome Apply(const std::vector<Write>& writes);

  // What has changed: nodes to be there, parents first, then nodes to be gone, children first.
  std::vector<NodeChange> Changes() const;

 private:
  Status ApplyOne(const Write& write, NodeStat& stat);
  Status Create(const Write& write, NodeStat& stat);
  Result<Node> Guarded(const Write& write);
  Node Anew() const;
  Result<std::optional<Node>> Find(const std::string& path);
  Result<bool> HasChildren(const std::string& path);

  const Load load_;
  const Names names_;
  const Stamp stamp_;
  std::map<std::string, std::optional<Node>> over_;  // by path; empty: gone
};

}  // namespace firn
