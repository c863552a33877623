#include "tests/support/registry/node_tree.h"

#include <algorithm>
#include <utility>

#include "registry/seam/node_version.h"
#include "registry/seam/requests.h"

namespace firn {

WriteOutcome NodeTree::Apply(std::vector<Write>&& writes, WallMs now, int64_t session,
                             std::vector<Change>* changes) {
  WriteOutcome outcome;
  outcome.stats.resize(writes.size());
  std::vector<Undo> undo;
  undo.reserve(writes.size());
  ++zxid_;
  for (size_t i = 0; i < writes.size(); ++i) {
    Status status = ApplyOne(writes[i], now, session, outcome.stats[i], undo);
    if (status.ok()) continue;
    TakeBack(undo);
    --zxid_;
    return {std::move(status), static_cast<int>(i), {}};
  }
  if (undo.empty()) --zxid_;
  if (changes == nullptr) return outcome;
  for (Undo& done : undo) {
    const auto kind = done.kind == Write::Kind::kCreate  ? Change::Kind::kCreated
                      : done.kind == Write::Kind::kErase ? Change::Kind::kErased
                                                         : Change::Kind::kSet;
    changes->push_back({kind, std::move(done.path)});
  }
  return outcome;
}

Status NodeTree::ApplyOne(Write& write, WallMs now, int64_t session, NodeStat& stat,
                          std::vector<Undo>& undo) {
  Undo step{write.kind, write.path, {}, ChangedAt(ParentOf(write.path))};
  switch (write.kind) {
    case Write::Kind::kCheck:
      return Guarded(write).status();
    case Write::Kind::kCreate:
      FIRN_TRY(Create(write, now, session, stat));
      break;
    case Write::Kind::kSet:
      FIRN_TRY(Set(write, now, stat, step));
      break;
    case Write::Kind::kErase:
      FIRN_TRY(Erase(write, step));
      break;
  }
  undo.push_back(std::move(step));
  return {};
}

Result<NodeTree::Entries::iterator> NodeTree::Guarded(const Write& write) {
  const auto entry = entries_.find(write.path);
  if (entry == entries_.end()) return NotFound(write.path + " does not exist");
  if (write.version != Write::kAnyVersion && write.version != entry->second.node.stat.version) {
    return Conflict("the version of " + write.path + " differs");
  }
  return entry;
}

Status NodeTree::Create(Write& write, WallMs now, int64_t session, NodeStat& stat) {
  const std::string_view parent_path = ParentOf(write.path);
  if (!parent_path.empty()) {
    const Node* parent = Find(parent_path);
    if (parent == nullptr) return NotFound("the parent of " + write.path + " does not exist");
    if (parent->stat.ephemeral_owner != 0) {
      return Invalid("the parent of " + write.path + " is ephemeral");
    }
  }
  if (Find(write.path) != nullptr) return Conflict(write.path + " exists already");
  stat.created_zxid = stat.changed_zxid = zxid_;
  stat.modified = now;
  stat.ephemeral_owner = write.lifetime == Lifetime::kEphemeral ? session : 0;
  Insert(write.path, {std::move(write.data), stat});
  SetChangedAt(parent_path, zxid_);
  return {};
}

Status NodeTree::Set(Write& write, WallMs now, NodeStat& stat, Undo& undo) {
  FIRN_ASSIGN(const auto entry, Guarded(write));
  Node& node = entry->second.node;
  undo.before.stat = node.stat;
  undo.before.data = std::exchange(node.data, std::move(write.data));
  node.stat.version = NextVersion(node.stat.version);
  if (skips_unguarded_ && node.stat.version == kUnguardedVersion) node.stat.version = 0;
  node.stat.modified = now;
  node.stat.changed_zxid = zxid_;
  stat = node.stat;
  return {};
}

Status NodeTree::Erase(const Write& write, Undo& undo) {
  FIRN_ASSIGN(const auto entry, Guarded(write));
  if (!entry->second.children.empty()) return Conflict(write.path + " has children");
  undo.before = std::move(entry->second.node);
  Remove(entry);
  SetChangedAt(ParentOf(write.path), zxid_);
  return {};
}

void NodeTree::TakeBack(std::vector<Undo>& undo) {
  for (auto step = undo.rbegin(); step != undo.rend(); ++step) {
    if (step->kind == Write::Kind::kErase) {
      Insert(step->path, std::move(step->before));
    } else if (const auto entry = entries_.find(step->path); step->kind == Write::Kind::kCreate) {
      Remove(entry);
    } else {
      entry->second.node = std::move(step->before);
    }
    SetChangedAt(ParentOf(step->path), step->parent_changed_at);
  }
}

int64_t NodeTree::ChangedAt(std::string_view path) const {
  const Node* node = Find(path);
  return node == nullptr ? 0 : node->stat.changed_zxid;
}

void NodeTree::SetChangedAt(std::string_view path, int64_t zxid) {
  const auto entry = entries_.find(path);
  if (entry != entries_.end()) entry->second.node.stat.changed_zxid = zxid;
}

void NodeTree::Insert(const std::string& path, Node node) {
  entries_.emplace(path, Entry{std::move(node), {}});
  const auto parent = entries_.find(ParentOf(path));
  if (parent == entries_.end()) return;
  const std::string_view name = NameOf(path);
  auto& names = parent->second.children;
  names.emplace(std::lower_bound(names.begin(), names.end(), name), name);
}

void NodeTree::Remove(Entries::iterator entry) {
  const auto parent = entries_.find(ParentOf(entry->first));
  if (parent != entries_.end()) {
    const std::string_view name = NameOf(entry->first);
    auto& names = parent->second.children;
    names.erase(std::lower_bound(names.begin(), names.end(), name));
  }
  entries_.erase(entry);
}

void NodeTree::SetVersion(std::string_view path, int64_t version) {
  const auto entry = entries_.find(path);
  if (entry == entries_.end()) Die("a version for a node that is not there");
  entry->second.node.stat.version = version;
}

const Node* NodeTree::Find(std::string_view path) const {
  const auto entry = entries_.find(path);
  return entry == entries_.end() ? nullptr : &entry->second.node;
}

const std::vector<std::string>* NodeTree::Children(std::string_view path) const {
  const auto entry = entries_.find(path);
  return entry == entries_.end() ? nullptr : &entry->second.children;
}

std::vector<std::string> NodeTree::EphemeralsOf(int64_t session) const {
  std::vector<std::string> paths;
  for (const auto& [path, entry] : entries_) {
    if (session != 0 && entry.node.stat.ephemeral_owner == session) paths.push_back(path);
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace firn
