#include "registry/dir/dir_coordinator.h"

#include <algorithm>
#include <utility>
#include <variant>

#include <unistd.h>

#include "registry/dir/dir_worker.h"
#include "registry/seam/requests.h"

namespace firn {

using Job = DirWorker::Job;

Result<std::unique_ptr<DirCoordinator>> DirCoordinator::Open(DirOptions options, const Clock& clock,
                                                             Entropy& entropy) {
  while (options.path.size() > 1 && options.path.back() == '/') options.path.pop_back();
  if (!options.path.starts_with('/') || options.path.size() == 1) {
    return Invalid("a directory registry requires an absolute path, as in dir:///var/lib/firn");
  }
  FIRN_ASSIGN(std::unique_ptr<DirTree> tree, DirTree::Open(options, clock, entropy));
  return std::unique_ptr<DirCoordinator>(
      new DirCoordinator(std::move(tree), options.time_limit, clock));
}

DirCoordinator::DirCoordinator(std::unique_ptr<DirTree> tree, Milliseconds time_limit,
                               const Clock& clock)
    : clock_(clock),
      time_limit_(time_limit),
      session_(tree->session()),
      worker_(std::make_unique<DirWorker>(std::move(tree), kPollInterval)) {}

DirCoordinator::~DirCoordinator() {
  // In a forked child there is no such thread to join.
  if (sentinel_.InChild()) static_cast<void>(worker_.release());
}

// --- requests -----------------------------------------------------------------------------------

bool DirCoordinator::RefuseUnready(Status checked, AnyDone done) {
  if (checked.ok() && sentinel_.InChild()) checked = Unavailable("a forked child has no session");
  if (checked.ok() && requests_.size() >= kPendingMax) {
    checked = Unavailable("too many requests at once");
  }
  if (checked.ok()) return false;
  refused_.emplace_back(std::move(done), std::move(checked));
  return true;
}

DirCoordinator::Token DirCoordinator::Expect(AnyDone done) {
  return requests_.Add(std::move(done), clock_.Boot() + time_limit_);
}

void DirCoordinator::Read(const std::string& path, ReadDone done, Changed changed) {
  if (RefuseUnready(CheckPath(path), done)) return;
  Job job{.token = Expect(std::move(done)), .kind = Job::Kind::kRead, .path = path};
  if (changed) {
    job.node_watch = watches_.IdOf(WatchKind::kNode, path);
    watching_.emplace(job.token, Watching{job.node_watch, 0, path, std::move(changed)});
  }
  worker_->Ask(std::move(job));
}

void DirCoordinator::List(const std::string& path, ListDone done, Changed changed) {
  if (RefuseUnready(CheckPath(path), done)) return;
  Job job{.token = Expect(std::move(done)), .kind = Job::Kind::kList, .path = path};
  if (changed) {
    job.node_watch = watches_.IdOf(WatchKind::kNode, path);
    job.children_watch = watches_.IdOf(WatchKind::kChildren, path);
    watching_.emplace(job.token,
                      Watching{job.node_watch, job.children_watch, path, std::move(changed)});
  }
  worker_->Ask(std::move(job));
}

void DirCoordinator::Sync(const std::string& path, SyncDone done) {
  if (RefuseUnready(CheckPath(path), done)) return;
  worker_->Ask({.token = Expect(std::move(done)), .kind = Job::Kind::kSync});
}

void DirCoordinator::Multi(std::vector<Write> writes, WriteDone done) {
  if (RefuseUnready(CheckWrites(writes), done)) return;
  worker_->Ask(
      {.token = Expect(std::move(done)), .kind = Job::Kind::kMulti, .writes = std::move(writes)});
}

void DirCoordinator::OnSession(std::function<void(SessionEvent)> handler) {
  on_session_ = std::move(handler);
}

// --- Dispatch -----------------------------------------------------------------------------------

int DirCoordinator::Dispatch(Milliseconds wait) {
  int delivered = ReportOwn();
  if (sentinel_.InChild()) return delivered;
  if (const auto due = requests_.NextDue()) {
    wait = std::clamp(*due - clock_.Boot(), Milliseconds(0), wait);
  }
  for (DirWorker::Event& event : worker_->inbox.Take(delivered > 0 ? Milliseconds(0) : wait)) {
    if (auto* answered = std::get_if<Answered>(&event)) {
      KeepWatching(answered->token, answered->answer);
      const std::optional<AnyDone> done = requests_.Take(answered->token);
      if (!done.has_value()) continue;  // answered when its time limit passed
      Tell(*done, std::move(answered->answer));
      ++delivered;
    } else {
      const WatchTable::Fired fired = watches_.Fire(std::get<Noticed>(event).watch);
      for (const Changed& changed : fired) changed();
      delivered += static_cast<int>(fired.size());
    }
  }
  return delivered + ReportOverdue();
}

// Delivers the session event, once, and the refusals.
int DirCoordinator::ReportOwn() {
  int delivered = 0;
  if (!std::exchange(told_session_, true)) {
    if (on_session_) on_session_({SessionEvent::Kind::kConnected, session_});
    ++delivered;
  }
  auto refused = std::exchange(refused_, {});
  for (auto& [done, status] : refused) AnswerFailure(done, std::move(status));
  return delivered + static_cast<int>(refused.size());
}

int DirCoordinator::ReportOverdue() {
  const auto overdue = requests_.TakeDue(clock_.Boot());
  for (const auto& [token, done] : overdue) {
    watching_.erase(token);
    AnswerLost(done, "the directory registry did not answer in time");
  }
  return static_cast<int>(overdue.size());
}

void DirCoordinator::KeepWatching(Token token, const Answer& answer) {
  auto entry = watching_.extract(token);
  if (entry.empty()) return;
  Watching& watching = entry.mapped();
  const auto* node = std::get_if<Result<Node>>(&answer);
  const Code code =
      node != nullptr ? node->code() : std::get<Result<std::vector<std::string>>>(answer).code();
  if (code == Code::kOk && watching.children_id != 0) {
    watches_.Add(watching.children_id, WatchKind::kChildren, watching.path,
                 std::move(watching.changed));
  } else if (code == Code::kOk || code == Code::kNotFound || code == Code::kCorrupt) {
    watches_.Add(watching.node_id, WatchKind::kNode, watching.path, std::move(watching.changed));
  }
}

void DirCoordinator::Wake() {
  if (!sentinel_.InChild()) worker_->inbox.Wake();
}

}  // namespace firn
