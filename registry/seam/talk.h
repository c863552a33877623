#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/task.h"

namespace firn {

// What became of a multi. Whoever reads it takes every fate in hand, the unknown one too: a switch
// over them has no default.
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

// One node for each path asked for, in order; nothing where there is no such node.
using Nodes = std::vector<std::optional<Node>>;

// A question to the registry on its way, to be awaited at once.
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

// Tasks and the registry that they talk to. Every verb asks when it is called, in the order of the
// calls, and ends with the coordinator's answer: kUnavailable, or an unknown fate, when the
// connection is lost. A task that is destroyed meanwhile hears of none.
// Owned by the control thread.
class Talk final : public TaskRunner {
 public:
  explicit Talk(Coordinator& coordinator) : coordinator_(coordinator) {}

  int64_t session() const { return coordinator_.session(); }

  // `changed`: the watch, which tells whoever made it even when the task has gone.
  Asked<Result<Node>> Read(const std::string& path, Coordinator::Changed changed = {});
  Asked<Result<std::vector<std::string>>> List(const std::string& path);
  Asked<Status> Sync(const std::string& path);
  Asked<Written> Multi(const std::vector<Write>& writes);

  // Of at least one node, asked without waiting in between; in the order in which they came.
  Asked<Readings> ReadAll(const std::vector<std::string>& paths);

  // Nodes as they are after a sync: everything that was acknowledged to anybody before the call is
  // in them. All or nothing: when the sync or one read fails, this fails so. The same when the
  // session has ended by then: so what is written at once is written in the session that was read
  // in.
  Task<Result<Nodes>> ReadSynced(std::vector<std::string> paths);

 private:
  template <typename Answer>
  auto Tell(const Asked<Answer>& asked);
  Asked<Result<Nodes>> SyncAndReadAll(const std::vector<std::string>& paths);

  Coordinator& coordinator_;
};

}  // namespace firn
