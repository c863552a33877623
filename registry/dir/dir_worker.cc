#include "registry/dir/dir_worker.h"

#include <utility>

#include "common/base/cat.h"
#include "common/base/no_signals.h"

namespace firn {
namespace {

// The state that a watch compares: different results mean that the node has changed.
std::string StateSeen(const Result<Node>& node) {
  if (!node.ok()) return node.code() == Code::kCorrupt ? "damaged" : "";
  return Cat(node->stat.created_zxid, ".", node->stat.version);
}

std::string StateSeen(const Result<std::vector<std::string>>& names) {
  if (!names.ok()) return {};
  std::string look = "/";
  for (const std::string& name : *names) look += name + "/";
  return look;
}

}  // namespace

DirWorker::DirWorker(std::unique_ptr<DirTree> tree, Milliseconds poll_interval)
    : poll_interval_(poll_interval),
      tree_(std::move(tree)),
      thread_(ThreadWithoutSignals([this] { Run(); })) {}

DirWorker::~DirWorker() {
  tree_->Abort();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    arrived_.notify_one();
  }
  thread_.join();
}

void DirWorker::Ask(Job job) {
  const std::lock_guard lock(mutex_);
  jobs_.push_back(std::move(job));
  arrived_.notify_one();
}

void DirWorker::Run() {
  while (true) {
    std::optional<Job> job = Next();
    if (job.has_value()) {
      inbox.Push(Answered{job->token, Do(*job)});
      continue;
    }
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
  }
}

// Returns the next job; empty at the end. Polls the watched nodes while it waits.
std::optional<DirWorker::Job> DirWorker::Next() {
  std::unique_lock lock(mutex_);
  const auto something = [this] { return stopping_ || !jobs_.empty(); };
  while (!something()) {
    if (watches_.empty()) {
      arrived_.wait(lock, something);
    } else if (!arrived_.wait_for(lock, poll_interval_, something)) {
      lock.unlock();
      CheckWatches();
      lock.lock();
    }
  }
  if (stopping_) return std::nullopt;
  Job job = std::move(jobs_.front());
  jobs_.pop_front();
  return job;
}

Answer DirWorker::Do(Job& job) {
  switch (job.kind) {
    case Job::Kind::kRead: {
      Result<Node> node = tree_->Read(job.path);
      if (node.ok() || node.code() == Code::kNotFound || node.code() == Code::kCorrupt) {
        LeaveWatch(job.node_watch, WatchKind::kNode, job.path, StateSeen(node));
      }
      return node;
    }
    case Job::Kind::kList: {
      Result<std::vector<std::string>> names = tree_->List(job.path);
      if (names.ok()) {
        LeaveWatch(job.children_watch, WatchKind::kChildren, job.path, StateSeen(names));
      } else if (names.code() == Code::kNotFound) {
        LeaveWatch(job.node_watch, WatchKind::kNode, job.path, {});
      }
      return names;
    }
    case Job::Kind::kSync:
      return tree_->Sync();
    case Job::Kind::kMulti:
      return tree_->Multi(job.writes);
  }
  return Internal("no such job");
}

// An earlier watch with the same number keeps its state, so it fires at least as early.
void DirWorker::LeaveWatch(WatchTable::Id id, WatchKind kind, const std::string& path,
                           std::string seen) {
  if (id == 0) return;
  if (watches_.empty()) changes_seen_ = 0;
  watches_.emplace(id, Watch{kind, path, std::move(seen)});
}

void DirWorker::CheckWatches() {
  const Result<uint64_t> changes = tree_->Changes();
  if (!changes.ok() || *changes == changes_seen_) return;
  changes_seen_ = *changes;
  for (auto watch = watches_.begin(); watch != watches_.end();) {
    const auto& [kind, path, seen] = watch->second;
    const std::string look =
        kind == WatchKind::kNode ? StateSeen(tree_->Read(path)) : StateSeen(tree_->List(path));
    if (look == seen) {
      ++watch;
      continue;
    }
    inbox.Push(Noticed{watch->first});
    watch = watches_.erase(watch);
  }
}

}  // namespace firn
