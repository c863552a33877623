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
};

// What the calls of one IO thread share.
struct CallHost {
  JobQueue& jobs;
  const std::shared_ptr<Bells> bells;  // of blocking calls
  Fleet& fleet;
  Sender& sender;
  const CallLimits limits;
  std::atomic<size_t> calls = 0;       // in progress
  std::atomic<bool> stopping = false;  // calls end
};

// One call: the record that its caller and its IO thread share, and the state of its failover.
// RunCall, in call.cc, is the call itself.
//
//  1. Each server is asked once. Only if an idle connection turns out to be closed is the same
//     server asked once more, on a fresh one.
//  2. At most attempts_max requests are sent, and as many again in each round of rule 5.
//     Connections that cannot be opened are not counted; there are at most kConnectsMax before the
//     call ends.
//  3. Every request but the first uses the fleet's retry budget, except the repeated one of rule 1,
//     those that follow a connection that could not be opened, and those of calls that lost their
//     connection to another call's time-out, if Fleet::MayMove permits it.
//  4. A refusal that another server would repeat ends the call, and so does any failure with
//     kFailfast.
//  5. If no more may be asked, and all that could be reached are overloaded, the call waits for the
//     shortest advised time plus up to half of it, if the deadline permits. Then it begins a new
//     round; there are at most kRoundsMax.
//  6. If no server is left, the call waits for news of servers; also if all were unreachable,
//     silent or draining, and lists may change. Servers of a newer list are asked first, then all
//     once more. If one was silent or unreachable, the call also retries after the time of an
//     attempt, because that server may be back without any news.
//  7. No attempt starts at or after the deadline.
//  8. A request about a lease is sent to the servers that it names, and to no other one after its
//     answer was lost: the server may have done what was requested. If it is for one server only,
//     rule 6 applies only while that server cannot be picked.
//
// Attempts are entries of a table. An ended call forgets them; their pipelines still report to the
// fleet what becomes of them.
//
// Made on any thread; used by the IO thread until it has ended, and then by its caller.
class Call final : public Request,
                   public Job,
                   public PooledTask,
                   public std::enable_shared_from_this<Call> {
 public:
  static constexpr size_t kConnectsMax = 16;
  static constexpr int kRoundsMax = 100;

  // Without `done`, the caller waits with AwaitEnd. `report` may be null.
  Call(CallHost& host, Ask what, Micros deadline, CallReport* report, CallDone done);

  // Blocks until the call has ended; status and reply are then the caller's.
  void AwaitEnd() const;
  Status& status() { return status_; }
  Micros deadline() const { return deadline_; }

  // Ends it with this status, instead of running it.
  void Refuse(Status status);
  FramePool& frames() override { return host_.jobs.frames(); }
  // News of servers.
  void OnNews();

  void OnOutcome(size_t attempt, Outcome outcome, bool last) override;
  Task<> Run() override;
  void AfterEnd() override;

 private:
  friend Task<> RunCall(Call* call);
  friend class NextOutcome;
  static constexpr Micros kOverloadPause{10'000};  // when the servers give no advice

  struct Attempt {
    ServerPtr server{};  // null: the entry is free
    Micros began{0};
    std::shared_ptr<const Connection> connection{};
    bool late = false;                 // it has had its time; its answer is still accepted
    bool ended = false;                // `outcome` is the last
    std::optional<Outcome> outcome{};  // that the call has not seen yet

    bool under_way() const { return server != nullptr; }
    bool in_time() const { return under_way() && !late; }
  };

  // The servers that the call does not ask again before the next round.
  struct Round {
    std::vector<ServerPtr> tried{};
    size_t overloaded = 0;  // of them
    size_t unreached = 0;   // of them: no connection could be opened
    size_t silent = 0;      // of them: reached, and without an answer
    size_t lost = 0;        // of them: only a newer list makes up for it
    Micros shortest_advice{0};
    bool waited_for_news = false;  // when no server was left
  };

  // What to do while no attempt can be answered in time.
  struct Step {
    enum class Kind : uint8_t { kSend, kWait, kEnd };
    Kind kind = Kind::kEnd;
    ServerPtr server{};
    bool fresh = false;     // kSend: on a new connection
    bool for_news = false;  // kWait: ends with news of servers
    Micros until{0};
    std::string_view why{};  // kEnd
  };

  Step NextStep();
  Step NoneLeft();
  // All of this round is over: waits for another one, or ends for the reason `why`.
  Step RoundOver(std::string_view why);
  ServerPtr PickAnother() const;

  // If no connection may be opened yet, sets the server aside until one may. The request that is
  // sent instead uses no more of the retry budget.
  void Send(ServerPtr server, bool fresh);
  void Pause(const Step& step);
  // Returns an attempt whose outcome the call has not seen yet, preferably one with an answer.
  std::optional<size_t> Unseen() const;
  // Learns from the outcome of an attempt. True if it is the call's answer.
  bool Heed(size_t at);
  void HeedFailure(const Attempt& attempt, const Outcome& outcome);
  void Tell(const Attempt& attempt, const Outcome& outcome);

  void EndWithAnswer();
  void EndAtDeadline();
  void EndStopped();
  void EndFailed(std::string_view why);
  // `last`: the outcome whose refusal and advice the call's report contains.
  void EndWith(Status status, const Outcome& last = {});

  Micros now() const { return host_.jobs.now(); }
  bool MaySend() const;
  Micros NextTime() const;
  size_t FreeEntry() const;
  bool AnyInTime() const { return std::ranges::any_of(attempts_, &Attempt::in_time); }
  bool AnyUnderWay() const { return std::ranges::any_of(attempts_, &Attempt::under_way); }
  // Reports attempts under way as `end`; without it, as timed out.
  void LeaveAttempts(std::optional<AttemptEnd> end);

  CallHost& host_;
  const Micros deadline_;
  Micros began_{0};  // on the IO thread
  CallReport* const report_;
  CallDone done_;
  const std::shared_ptr<Bell> bell_;  // null: it has a callback
  std::atomic<bool> ended_ = false;
  Status status_;

  std::array<Attempt, 3> attempts_{};
  Micros pause_until_{0};
  bool pause_for_news_ = false;

  std::vector<CallAttempt> told_;  // for the report
  std::vector<ServerPtr> set_aside_;
  Micros set_aside_until_{0};
  Round round_;
  int rounds_ = 1;         // of rule 5
  int sent_ = 0;           // since the last of them began
  bool free_next_ = true;  // the next request uses no budget
  bool final_ = false;     // the last outcome ends the call, unless again_ is set
  bool repeated_ = false;  // rule 1 was used for the current server
  ServerPtr again_;        // rule 1: to be asked once more
  Outcome last_{};
};

using CallPtr = std::shared_ptr<Call>;

}  // namespace firn::client
