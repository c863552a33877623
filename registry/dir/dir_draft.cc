#include "registry/dir/dir_draft.h"

#include <utility>

#include "registry/seam/node_version.h"
#include "registry/seam/requests.h"

namespace firn {

WriteOutcome DirDraft::Apply(const std::vector<Write>& writes) {
  WriteOutcome outcome;
  outcome.stats.resize(writes.size());
  for (size_t i = 0; i < writes.size(); ++i) {
    Status status = ApplyOne(writes[i], outcome.stats[i]);
    if (status.ok()) continue;
    const int failed = status.code() == Code::kUnavailable ? -1 : static_cast<int>(i);
    return {std::move(status), failed, {}};
  }
  return outcome;
}

Status DirDraft::ApplyOne(const Write& write, NodeStat& stat) {
  if (write.kind == Write::Kind::kCreate) return Create(write, stat);
  FIRN_ASSIGN(Node node, Guarded(write));
  if (write.kind == Write::Kind::kCheck) return {};
  if (write.kind == Write::Kind::kErase) {
    FIRN_ASSIGN(const bool children, HasChildren(write.path));
    if (children) return Conflict(write.path + " has children");
    over_[write.path] = std::nullopt;
    return {};
  }
  node.data = write.data;
  node.stat.version = NextVersion(node.stat.version);
  node.stat.modified = stamp_.now;
  node.stat.changed_zxid = stamp_.changed_zxid;
  stat = node.stat;
  over_[write.path] = std::move(node);
  return {};
}

Status DirDraft::Create(const Write& write, NodeStat& stat) {
  const std::string parent_path(ParentOf(write.path));
  if (!parent_path.empty()) {
    FIRN_ASSIGN(const std::optional<Node> parent, Find(parent_path));
    if (!parent.has_value()) return NotFound("the parent of " + write.path + " does not exist");
    if (parent->stat.ephemeral_owner != 0) {
      return Invalid("the parent of " + write.path + " is ephemeral");
    }
  }
  FIRN_ASSIGN(const std::optional<Node> there, Find(write.path));
  if (there.has_value()) return Conflict(write.path + " exists already");
  stat.created_zxid = stamp_.created_zxid;
  stat.changed_zxid = stamp_.changed_zxid;
  stat.modified = stamp_.now;
  stat.ephemeral_owner = write.lifetime == Lifetime::kEphemeral ? stamp_.session : 0;
  over_[write.path] = Node{write.data, stat};
  return {};
}

Node DirDraft::NewNode() const {
  Node node;
  node.stat.created_zxid = stamp_.created_zxid;
  node.stat.modified = stamp_.now;
  return node;
}

Result<Node> DirDraft::Guarded(const Write& write) {
  Result<std::optional<Node>> found = Find(write.path);
  const bool replaces = write.kind != Write::Kind::kCheck && write.version == Write::kAnyVersion;
  if (found.code() == Code::kCorrupt && replaces) return NewNode();
  FIRN_ASSIGN(std::optional<Node> node, std::move(found));
  if (!node.has_value()) return NotFound(write.path + " does not exist");
  if (write.version != Write::kAnyVersion && write.version != node->stat.version) {
    return Conflict("the version of " + write.path + " differs");
  }
  return std::move(*node);
}

Result<std::optional<Node>> DirDraft::Find(const std::string& path) {
  const auto drafted = over_.find(path);
  return drafted != over_.end() ? Result<std::optional<Node>>(drafted->second) : load_(path);
}

Result<bool> DirDraft::HasChildren(const std::string& path) {
  for (const auto& [drafted, node] : over_) {
    if (node.has_value() && drafted.size() > 1 && ParentOf(drafted) == path) return true;
  }
  const Result<std::vector<std::string>> names = names_(path);
  if (names.code() == Code::kNotFound) return false;  // created by this multi
  if (!names.ok()) return names.status();
  for (const std::string& name : *names) {
    const auto drafted = over_.find(ChildPath(path, name));
    if (drafted == over_.end() || drafted->second.has_value()) return true;
  }
  return false;
}

std::vector<NodeChange> DirDraft::Changes() const {
  std::vector<NodeChange> changes;
  for (const auto& [path, node] : over_) {
    if (node.has_value()) changes.push_back({path, RenderNode(NameOf(path), *node)});
  }
  for (auto drafted = over_.rbegin(); drafted != over_.rend(); ++drafted) {
    if (!drafted->second.has_value()) changes.push_back({drafted->first, std::nullopt});
  }
  return changes;
}

}  // namespace firn
