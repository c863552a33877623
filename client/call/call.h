#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "client/call/bells.h"
#include "client/call/io_thread.h"
#include "client/call/request.h"
#include "client/call_report.h"
#include "client/client_options.h"
#include "client/fleet/fleet.h"
#include "client/wire/ask.h"
#include "client/wire/outcome.h"
#include "common/base/status.h"
#include "common/time/micros.h"

namespace firn::client {

// Called once, on the IO thread. The reply is set if the status is ok, and may be moved from.
using CallDone = std::function<void(Status, Reply&)>;

struct CallLimits {
  FailureMode on_failure = FailureMode::kFailover;
  int attempts_max = 3;
  Micros attempt_limit{80'000};
  // Whether the calls use the fleet's retry budget, and it counts them and learns from their
  // outcomes. Otherwise it learns only whether connections can be opened.
  bool counts = true;
};

// State that the calls of one IO thread share.
struct CallHost {
  JobQueue& jobs;
  const std::shared_ptr<Bells> bells;  // of blocking calls
  Fleet& fleet;
  Sender& sender;
  const CallLimits limits;
  std::atomic<size_t> calls = 0;       // in progress
  std::atomic<bool> stopping = false;  // calls are ended
};

// One call: the record that its caller and its IO thread share, and the state of its failover.
// RunCall, in call.cc, is its control flow.
//
//  1. A call sends at most one request to each server. Exception: if an idle connection turns out
//     to be closed, the request is repeated on a fresh connection to the same server.
//  2. A round of a call has at most attempts_max requests (rule 5 begins rounds). Connections that
//     cannot be opened do not count; after kConnectsMax of them the call ends.
//  3. Every request but the first uses the fleet's retry budget. Exceptions: the repetition of rule
//     1; a request after a connection that could not be opened; and, if Fleet::MayMove permits it,
//     a request of a call that lost its connection to another call's timeout.
//  4. A refusal that another server would repeat ends the call. With kFailfast, any failure does.
//  5. If no more requests may be sent, and all servers that were reached are overloaded, the call
//     waits for the shortest advised time plus up to half of it, if the deadline permits. Then it
//     begins a new round; there are at most kRoundsMax.
//  6. If no server can be picked, the call waits for news of servers. It also does if all servers
//     were unreachable, silent or draining, and lists may change. It then tries servers of a newer
//     list first, then all servers again. If a server was silent or unreachable, the call also
//     retries after the time of an attempt, because that server may be back without any news.
//  7. No attempt starts at or after the deadline.
//  8. A request with a Route is sent to its servers only, and after a lost answer to no other one.
//     If the route has one server, rule 6 applies only while that server cannot be picked.
//
// Attempts are entries of a table. A call that ends forgets them; their pipelines still report the
// outcomes to the fleet.
//
// Created on any thread; used by the IO thread until it has ended, then by its caller.
class Call final : public Request,
                   public Job,
                   public PooledTask,
                   public std::enable_shared_from_this<Call> {
 public:
  static constexpr size_t kConnectsMax = 16;
  static constexpr int kRoundsMax = 100;

  // Without `done`, the caller waits with AwaitEnd. `report` may be null.
  Call(CallHost& host, Ask what, Micros deadline, CallReport* report, CallDone done);

  // Blocks until the call has ended. Afterwards the caller owns status and reply.
  void AwaitEnd() const;
  Status& status() { return status_; }
  Micros deadline() const { return deadline_; }

  // Ends the call with this status instead of running it.
  void Refuse(Status status);
  FramePool& frames() override { return host_.jobs.frames(); }
  // Notifies the call that the servers have changed.
  void OnNews();

  void OnOutcome(size_t attempt, Outcome outcome, bool last) override;
  Task<> Run() override;
  void AfterEnd() override;

 private:
  friend Task<> RunCall(Call* call);
  friend class NextOutcome;
  static constexpr Micros kOverloadPause{10'000};  // if the servers give no advice
  static constexpr size_t kAttempts = 3;           // in progress

  struct Attempt {
    ServerPtr server{};  // null: the entry is free
    Micros began{0};
    std::shared_ptr<const Connection> connection{};
    bool late = false;   // it has timed out; its answer is still accepted
    bool ended = false;  // it gets no other outcome

    bool under_way() const { return server != nullptr; }
    bool in_time() const { return under_way() && !late; }
  };

  // The servers that the call does not try again in this round, and their outcomes.
  struct Round {
    std::vector<ServerPtr> tried{};
    size_t overloaded = 0;  // overloaded servers in `tried`
    size_t unreached = 0;   // no connection could be opened
    size_t silent = 0;      // reached, but did not answer
    size_t lost = 0;        // only a newer list can replace them
    Micros shortest_advice{0};
    bool waited_for_news = false;  // because no server was left
  };

  // The state that a call has only once something has failed: most calls succeed at once, and a
  // burst is faster if they are small.
  struct Failures {
    std::array<std::optional<Outcome>, kAttempts> unseen{};  // by attempt; not yet seen by the call
    std::vector<CallAttempt> told{};                         // for the report
    std::vector<ServerPtr> set_aside{};
    Micros set_aside_until{0};
    Round round{};
    ServerPtr again{};  // rule 1: server to which the request is repeated
    Outcome last{};
  };
  Failures& failures() {
    if (failures_ == nullptr) failures_ = std::make_unique<Failures>();
    return *failures_;
  }
  const Failures& failures_so_far() const {
    static const auto* const none = new Failures();  // threads may outlive static objects
    return failures_ == nullptr ? *none : *failures_;
  }

  // The next step of a call while none of its attempts can still be answered in time.
  struct Step {
    enum class Kind : uint8_t { kSend, kWait, kEnd };
    Kind kind = Kind::kEnd;
    ServerPtr server{};
    bool fresh = false;     // kSend: on a new connection
    bool for_news = false;  // kWait: news of servers end it
    Micros until{0};
    std::string_view why{};  // kEnd
  };

  Step NextStep();
  Step NoneLeft();
  // Ends this round: waits for another one, or ends the call for the reason `why`.
  Step RoundOver(std::string_view why);
  ServerPtr PickAnother() const;

  // Sends the request. If no connection may be opened yet, sets the server aside until one may; the
  // request that is sent instead does not use the retry budget again.
  void Send(ServerPtr server, bool fresh);
  void Pause(const Step& step);
  // Returns an attempt with an outcome that the call has not seen, preferably an answer.
  std::optional<size_t> Unseen() const;
  // Processes the outcome of an attempt. Returns true if it is the call's answer.
  bool Heed(size_t at);
  void HeedFailure(const Attempt& attempt, const Outcome& outcome);
  void Tell(const Attempt& attempt, const Outcome& outcome);

  void EndWithAnswer();
  void EndAtDeadline();
  void EndStopped();
  void EndFailed(std::string_view why);
  // `last`: the outcome whose refusal and advice are in the call's report.
  void EndWith(Status status, const Outcome& last = {});

  Micros now() const { return host_.jobs.now(); }
  bool MaySend() const;
  Micros NextTime() const;
  size_t FreeEntry() const;
  bool AnyInTime() const { return std::ranges::any_of(attempts_, &Attempt::in_time); }
  bool AnyUnderWay() const { return std::ranges::any_of(attempts_, &Attempt::under_way); }
  // Reports attempts in progress as `end`; without it, as timed out.
  void LeaveAttempts(std::optional<AttemptEnd> end);

  CallHost& host_;
  const Micros deadline_;
  Micros began_{0};  // on the IO thread
  CallReport* const report_;
  CallDone done_;
  const std::shared_ptr<Bell> bell_;  // null: the call has a callback
  std::atomic<bool> ended_ = false;
  Status status_;

  std::array<Attempt, kAttempts> attempts_{};
  std::optional<size_t> answered_;  // the attempt whose answer has arrived
  std::unique_ptr<Failures> failures_;
  Micros pause_until_{0};
  bool pause_for_news_ = false;
  int rounds_ = 1;         // as in rule 5
  int sent_ = 0;           // requests in the current round
  bool free_next_ = true;  // the next request does not use the budget
  bool final_ = false;     // the last outcome ends the call, unless `again` is set
  bool repeated_ = false;  // rule 1 was used for the current server
};

using CallPtr = std::shared_ptr<Call>;

}  // namespace firn::client
