#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/time/clock.h"
#include "registry/seam/coordinator.h"

namespace firn {

// A coordinator's verbs as blocking calls, for commands, audits and tests. Each call dispatches
// until its own answer has arrived, and delivers other answers on the way.
//
// Sharp edge: replaces the coordinator's session handler, removes it at its end, and must not be
// used inside an answer.
// Owned by one thread.
class BlockingCoordinator {
 public:
  // Waits at most `limit` for an answer. Coordinators have time limits of their own, so a longer
  // wait is a defect and ends the process.
  BlockingCoordinator(Coordinator& coordinator, const Clock& clock,
                      Milliseconds limit = Milliseconds(60'000));
  BlockingCoordinator(const BlockingCoordinator&) = delete;
  BlockingCoordinator& operator=(const BlockingCoordinator&) = delete;

  // Waits for a session. kUnavailable if there is none within `patience`, kDenied if the registry
  // refuses the credentials.
  Status Connect(Milliseconds patience);

  // The session of the latest event if that was a connection; 0 if it was a disconnection, which
  // can follow an answer at once, or if there was no event. For the next owner of the coordinator.
  int64_t connected_in() const { return news_->connected_in; }

  Result<Node> Read(const std::string& path);
  // Reads many nodes, pipelined: all requests are sent without waiting. Returns one answer for each
  // path, in the order of the paths.
  std::vector<Result<Node>> ReadAll(const std::vector<std::string>& paths);
  Result<std::vector<std::string>> List(const std::string& path);
  Status Sync(const std::string& path);
  WriteOutcome Multi(std::vector<Write> writes);
  Status PrepareRoot();

 private:
  // State of the session handler, which may outlive this object; this may outlive the coordinator.
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
