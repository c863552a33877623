#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/task_runner.h"

namespace firn {

// The result of a multi. Readers must handle every fate, also the unknown one: a switch over them
// has no default.
struct Written {
  enum class Fate {
    kDone,
    kRefused,  // by the tree: `failed` is the index of the write that did not apply
    kNotSent,  // nothing was done
    kUnknown,  // it may have been done, or may still be
  };

  Fate fate = Fate::kUnknown;
  Status status{};
  int failed = -1;
  std::vector<NodeStat> stats{};  // when done, as in a WriteOutcome
};

// The answer to one of several reads.
struct Reading {
  size_t which;  // of the paths
  Result<Node> node;
};
using Readings = std::vector<Reading>;

// One node for each requested path, in order; empty if there is no such node.
using Nodes = std::vector<std::optional<Node>>;

// A pending request to the registry, to be awaited at once.
template <typename Answer>
class [[nodiscard]] Asked {
 public:
  struct Question : TaskWait {
    std::optional<Answer> answer{};
  };

  Asked() = default;
  std::weak_ptr<Question> question() const { return question_; }

  bool await_ready() const noexcept { return false; }
  void await_suspend(std::coroutine_handle<> task) { question_->task = task; }
  Answer await_resume() { return *std::move(question_->answer); }

 private:
  std::shared_ptr<Question> question_ = std::make_shared<Question>();
};

// Runs tasks that use a registry, and sends their requests. Every verb sends its request when it is
// called, in the order of the calls, and ends with the coordinator's answer: kUnavailable, or an
// unknown fate, if the connection is lost. A task that is destroyed meanwhile gets no answer. Owned
// by the control thread.
class AsyncRegistry final : public TaskRunner {
 public:
  explicit AsyncRegistry(Coordinator& coordinator) : coordinator_(coordinator) {}

  int64_t session() const { return coordinator_.session(); }

  // `changed` is the watch's callback; it is called even if the task no longer exists.
  Asked<Result<Node>> Read(const std::string& path, Coordinator::Changed changed = {});
  Asked<Result<std::vector<std::string>>> List(const std::string& path);
  Asked<Status> Sync(const std::string& path);
  Asked<Written> Multi(const std::vector<Write>& writes);

  // Reads one or more nodes, pipelined. The answers are in the order of their arrival. `changed`
  // returns the callback of a path's watch.
  using Watch = std::function<Coordinator::Changed(size_t which)>;
  Asked<Readings> ReadAll(const std::vector<std::string>& paths, const Watch& changed = {});

  // Reads nodes after a sync: they contain every write that was acknowledged to any client before
  // the call. Fails if the sync or a read fails, or if the session has ended meanwhile. So a write
  // that follows at once belongs to the session of the reads.
  Task<Result<Nodes>> ReadSynced(std::vector<std::string> paths);

 private:
  template <typename Answer>
  auto Deliver(const Asked<Answer>& asked);
  Asked<Result<Nodes>> SyncAndReadAll(const std::vector<std::string>& paths);

  Coordinator& coordinator_;
};

}  // namespace firn
