#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/time/clock.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A coordinator's verbs for those who have nothing else to do meanwhile: commands, audits, tests.
// Each call dispatches until its own answer has come; what else arrives is delivered on the way.
//
// Sharp edge: takes over the coordinator's session handler, leaves it without one at its end, and
// must not be used inside an answer.
// Owned by one thread.
class BlockingCoordinator {
 public:
  // Waits at most `limit` for an answer. Coordinators keep time limits of their own, so a longer
  // silence is a defect and ends the process.
  BlockingCoordinator(Coordinator& coordinator, const Clock& clock,
                      Milliseconds limit = Milliseconds(60'000));
  BlockingCoordinator(const BlockingCoordinator&) = delete;
  BlockingCoordinator& operator=(const BlockingCoordinator&) = delete;

  // Waits for a session; kUnavailable when none has come within `patience`, kDenied when the
  // registry refuses the credentials.
  Status Connect(Milliseconds patience);

  // The session that the last news were of a connection in; 0 when they were of its loss, which may
  // come right behind an answer, or when there were none. For whoever takes the coordinator over.
  int64_t connected_in() const { return news_->connected_in; }

  Result<Node> Read(const std::string& path);
  // Many nodes in the time of a few: asked one behind another without waiting, each with an answer
  // of its own, in the order of the paths.
  std::vector<Result<Node>> ReadAll(const std::vector<std::string>& paths);
  Result<std::vector<std::string>> List(const std::string& path);
  Status Sync(const std::string& path);
  WriteOutcome Multi(std::vector<Write> writes);
  Status PrepareRoot();

 private:
  // What the session handler writes to; it may outlive this, and this the coordinator.
  struct News {
    bool denied = false;
    int64_t connected_in = 0;
  };

  template <typename Answer, typename Ask>
  Answer Await(Ask ask);

  Coordinator& coordinator_;
  const Clock& clock_;
  const Milliseconds limit_;
  const std::shared_ptr<News> news_ = std::make_shared<News>();
};

}  // namespace firn
