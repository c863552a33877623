#include "tests/support/registry/memory_coordinator.h"

#include <algorithm>
#include <utility>

#include "registry/seam/requests.h"

namespace firn {

// --- the tree -----------------------------------------------------------------------------------

void MemoryTree::Expire(int64_t session) {
  const std::lock_guard lock(mutex_);
  for (MemoryCoordinator* coordinator : attached_) {
    if (coordinator->granted_session_ == session) coordinator->LoseSession();
  }
  EraseEphemerals(session);
}

void MemoryTree::ExpireUntil(BootMs now, std::vector<std::pair<int64_t, BootMs>>& ends) {
  for (size_t i = 0; i < ends.size();) {
    if (ends[i].second > now) {
      ++i;
      continue;
    }
    Expire(ends[i].first);
    ends[i] = ends.back();
    ends.pop_back();
  }
}

MemoryTree::Image MemoryTree::Save() const {
  const std::lock_guard lock(mutex_);
  return nodes_;
}

void MemoryTree::Load(Image image, Sessions sessions) {
  const std::lock_guard lock(mutex_);
  nodes_ = std::move(image);
  if (sessions == Sessions::kStay) return;
  for (MemoryCoordinator* coordinator : attached_) coordinator->LoseSession();
}

void MemoryTree::SetVersion(std::string_view path, int64_t version) {
  const std::lock_guard lock(mutex_);
  nodes_.SetVersion(path, version);
}

void MemoryTree::SkipUnguarded() {
  const std::lock_guard lock(mutex_);
  nodes_.SkipUnguarded();
}

std::optional<Node> MemoryTree::Peek(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  const Node* node = nodes_.Find(path);
  return node == nullptr ? std::nullopt : std::optional(*node);
}

void MemoryTree::Digest(const std::vector<Write>& writes, int64_t session) {
  const auto add = [this](int64_t number) {
    for (int shift = 0; shift < 64; shift += 8) {
      const char byte = static_cast<char>(static_cast<uint64_t>(number) >> shift);
      digest_ = Fnv1a({&byte, 1}, digest_);
    }
  };
  add(clock_.Boot().ms());
  add(session);
  for (const Write& write : writes) {
    add(static_cast<int64_t>(write.kind));
    digest_ = Fnv1a(write.data, Fnv1a(write.path, digest_));
    add(write.version);
  }
}

WriteOutcome MemoryTree::Apply(std::vector<Write>&& writes, int64_t session) {
  Digest(writes, session);
  changes_.clear();
  WriteOutcome outcome = nodes_.Apply(std::move(writes), clock_.Wall(), session, &changes_);
  for (const NodeTree::Change& change : changes_) {
    for (MemoryCoordinator* coordinator : attached_) coordinator->Notice(change);
  }
  return outcome;
}

void MemoryTree::EraseEphemerals(int64_t session) {
  std::vector<Write> writes;
  for (std::string& path : nodes_.EphemeralsOf(session)) {
    writes.push_back(Write::Erase(std::move(path), Write::kAnyVersion));
  }
  if (!writes.empty()) static_cast<void>(Apply(std::move(writes), session));
}

// --- a client -----------------------------------------------------------------------------------

MemoryCoordinator::MemoryCoordinator(MemoryTree& tree) : tree_(tree) {
  const std::lock_guard lock(tree_.mutex_);
  tree_.attached_.push_back(this);
  granted_session_ = session_ = tree_.NewSession();
  Push(SessionEvent{SessionEvent::Kind::kConnected, granted_session_});
}

MemoryCoordinator::~MemoryCoordinator() {
  const std::lock_guard lock(tree_.mutex_);
  std::erase(tree_.attached_, this);
  if (!abandoned_) tree_.EraseEphemerals(granted_session_);
}

Status MemoryCoordinator::Ready(Status checked) const {
  if (checked.ok() && session_ != granted_session_) return Unavailable("the session has expired");
  return checked;
}

void MemoryCoordinator::Read(const std::string& path, ReadDone done, Changed changed) {
  const std::lock_guard lock(tree_.mutex_);
  Status ready = Ready(CheckPath(path));
  if (!ready.ok()) return Push(ReadAnswer{std::move(done), std::move(ready)});
  const Node* node = tree_.nodes_.Find(path);
  Push(ReadAnswer{std::move(done), node != nullptr
                                       ? Result<Node>(*node)
                                       : Result<Node>(NotFound(path + " does not exist"))});
  if (changed) Watch(WatchKind::kNode, path, std::move(changed));
}

void MemoryCoordinator::List(const std::string& path, ListDone done, Changed changed) {
  const std::lock_guard lock(tree_.mutex_);
  Status ready = Ready(CheckPath(path));
  if (!ready.ok()) return Push(ListAnswer{std::move(done), std::move(ready)});
  const std::vector<std::string>* names = tree_.nodes_.Children(path);
  if (changed) {
    const WatchKind kind = names != nullptr ? WatchKind::kChildren : WatchKind::kNode;
    Watch(kind, path, std::move(changed));
  }
  if (names == nullptr)
    return Push(ListAnswer{std::move(done), NotFound(path + " does not exist")});
  Push(ListAnswer{std::move(done), *names});
}

void MemoryCoordinator::Sync(const std::string& path, SyncDone done) {
  const std::lock_guard lock(tree_.mutex_);
  Status ready = Ready(CheckPath(path));
  Push(SyncAnswer{std::move(done), std::move(ready)});
}

void MemoryCoordinator::Multi(std::vector<Write> writes, WriteDone done) {
  const std::lock_guard lock(tree_.mutex_);
  Status ready = Ready(CheckWrites(writes));
  if (!ready.ok()) return Push(WriteAnswer{std::move(done), {std::move(ready), -1, {}}});
  // The answer goes first: a client that learns of a change already knows its own write.
  const size_t at = inbox_.size();
  Push(WriteAnswer{std::move(done), {}});
  WriteOutcome outcome = tree_.Apply(std::move(writes), granted_session_);
  std::get<WriteAnswer>(inbox_[at]).outcome = std::move(outcome);
}

void MemoryCoordinator::PrepareRoot(SyncDone done) { Sync("/", std::move(done)); }

void MemoryCoordinator::OnSession(std::function<void(SessionEvent)> handler) {
  on_session_ = std::move(handler);
}

void MemoryCoordinator::Notice(const NodeTree::Change& change) {
  if (watches_.empty()) return;
  PushAll(watches_.Fire(WatchKind::kNode, change.path));
  if (change.kind == NodeTree::Change::Kind::kSet) return;
  PushAll(watches_.Fire(WatchKind::kChildren, change.path));
  PushAll(watches_.Fire(WatchKind::kChildren, ParentOf(change.path)));
}

void MemoryCoordinator::Watch(WatchKind kind, const std::string& path, Changed changed) {
  watches_.Add(watches_.IdOf(kind, path), kind, path, std::move(changed));
}

void MemoryCoordinator::PushAll(WatchTable::Fired fired) {
  for (Changed& changed : fired) Push(std::move(changed));
}

void MemoryCoordinator::LoseSession() {
  granted_session_ = tree_.NewSession();
  Push(SessionEvent{SessionEvent::Kind::kExpired, 0});
  PushAll(watches_.FireAll());
  Push(SessionEvent{SessionEvent::Kind::kConnected, granted_session_});
}

void MemoryCoordinator::Push(Delivery delivery) {
  inbox_.push_back(std::move(delivery));
  arrived_.notify_one();
}

int MemoryCoordinator::Dispatch(Milliseconds wait) {
  {
    std::unique_lock lock(tree_.mutex_);
    if (wait.count() > 0) {
      arrived_.wait_for(lock, wait, [this] { return woken_ || !inbox_.empty(); });
    }
    woken_ = false;
    batch_.swap(inbox_);
  }
  for (Delivery& delivery : batch_) Deliver(delivery);
  const int delivered = static_cast<int>(batch_.size());
  batch_.clear();
  return delivered;
}

void MemoryCoordinator::Deliver(Delivery& delivery) {
  if (auto* read = std::get_if<ReadAnswer>(&delivery)) {
    read->done(std::move(read->result));
  } else if (auto* list = std::get_if<ListAnswer>(&delivery)) {
    list->done(std::move(list->result));
  } else if (auto* sync = std::get_if<SyncAnswer>(&delivery)) {
    sync->done(std::move(sync->status));
  } else if (auto* write = std::get_if<WriteAnswer>(&delivery)) {
    write->done(std::move(write->outcome));
  } else if (auto* changed = std::get_if<Changed>(&delivery)) {
    (*changed)();
  } else {
    const SessionEvent event = std::get<SessionEvent>(delivery);
    session_ = event.session;
    if (on_session_) on_session_(event);
  }
}

void MemoryCoordinator::Wake() {
  const std::lock_guard lock(tree_.mutex_);
  woken_ = true;
  arrived_.notify_one();
}

}  // namespace firn
