#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "client/call_report.h"
#include "client/client_options.h"
#include "client/fleet/fleet.h"
#include "client/fleet/server.h"
#include "client/wire/outcome.h"
#include "common/base/status.h"
#include "common/time/micros.h"

namespace firn::client {

// How one call goes from server to server: whom to ask next, when to wait, when to give up, and
// what its caller is told. It sends nothing and waits for nothing; AsyncCaller does, and goes by
// it:
//
//     while (true) {
//       step = plan.Next(now);
//       kTry:   ask step.server;  if (plan.Ended(step, outcome, began, now)) the reply is there
//       kWait:  until step.until, or news of servers
//       kEnd:   return plan.Failure();
//     }
//
//  1. Each server is asked once. Only where a connection that had been idle turns out closed is the
//     same server asked once more, on a fresh one.
//  2. At most attempts_max requests are sent, and as many again in each round of rule 5.
//     Connections that cannot be opened are not counted; of those there are kConnectsMax at most
//     before the call waits.
//  3. Every request but the first is paid for from the fleet's retry budget, except the one more of
//     rule 1, those that follow a connection that could not be opened, and those of calls that
//     lost their connection to another call's time-out, where Fleet::MayMove allows it.
//  4. A refusal that no other server would mend ends the call, and so does any failure in failfast.
//  5. When no more may be asked, and all that could be reached say OVERLOADED, the call waits as
//     long as the shortest advice, if the deadline allows, and up to half as long again, so that
//     not all calls come back together. Then it begins a new round; there are kRoundsMax at most.
//  6. When there is nobody to ask, the call waits for news of servers. So it does when all that it
//     could ask were out of reach, silent or on their way out, and lists may change: those that a
//     newer one has brought are asked first, then all of them once more. Where one was silent or
//     out of reach it looks again after the time of an attempt, for that one may be back without
//     any news.
//  7. Nothing begins at or after the deadline.
//
// Used by one thread at a time.
//
// Sharp edge: a server that a kTry names counts this call as under way until it is told what came
// of it, once: by Ended, or, when the call has ended meanwhile, by whoever asked, with Fleet::Done.
class CallPlan {
 public:
  static constexpr size_t kConnectsMax = 16;
  static constexpr int kRoundsMax = 100;

  struct Limits {
    FailureMode on_failure = FailureMode::kFailover;
    int attempts_max = 3;
    Micros attempt_limit{80'000};
    bool awaits_news = true;  // where nobody is left to ask: of servers that come, or come back
  };

  struct Step {
    enum class Kind : uint8_t {
      kTry,   // ask `server` until `until`; on a connection that is `fresh`, if it says so
      kWait,  // nothing until `until`; on news of servers only if `for_news`
      kEnd    // the call has failed: Failure() says how
    };
    Kind kind = Kind::kEnd;
    ServerPtr server{};
    bool fresh = false;
    bool for_news = false;
    Micros until{0};
  };

  // `tag` lives as long as the plan. `report` may be null.
  CallPlan(Fleet& fleet, const Limits& limits, std::string_view tag, Micros deadline,
           CallReport* report);

  // How to go on when nothing is under way: the first step, and the next after each.
  Step Next(Micros now);
  // While `busy` alone is being asked: another server to ask as well, or an end without one.
  Step Hedge(const ServerPtr& busy, Micros now);

  // A kTry for which no connection is begun before `again_at`, as one to that server has just come
  // to nothing. The others go first; when there is none, the call waits for that moment.
  void PutOff(const Step& step, Micros again_at);

  // What came of a kTry that began at `began`. True when the call has its answer.
  bool Ended(const Step& step, Outcome outcome, Micros began, Micros now);

  // What a kTry looked like when the call went on or ended without waiting for what comes of it,
  // for the report. The fleet is told by whoever asked.
  void Left(const Step& step, AttemptEnd end, Micros began, Micros now);

  // After kEnd: code and sentence, all attempts in it. Fills the report.
  Status Failure();

  // Fills the report of a call that ends otherwise.
  void FillReport();

  Micros deadline() const { return deadline_; }
  // The last outcome settles the call: no other one is waited for.
  bool settled() const { return final_; }

 private:
  static constexpr Micros kOverloadPause{10'000};  // when the servers give no advice

  Step TryOf(ServerPtr server, bool fresh, Micros now) const;
  Step EndOf(std::string_view why);
  ServerPtr PickAnother(Micros now);
  Step NobodyLeft(Micros now);
  // All of this round is over: waits for another one, or ends for the reason `why`.
  Step RoundOver(std::string_view why, Micros now);
  void BeginRound();
  bool MustStop(Micros now);

  Fleet& fleet_;
  const Limits limits_;
  const std::string_view tag_;
  const Micros deadline_;
  CallReport* const report_;

  std::vector<CallAttempt> attempts_;
  std::vector<ServerPtr> tried_;  // in this round
  std::vector<ServerPtr> put_off_;
  Micros again_at_{0};  // of the first of those
  int sent_ = 0;        // since the last round of rule 5 began
  int rounds_ = 1;
  bool free_next_ = true;         // the next request costs no budget
  bool final_ = false;            // the last outcome settles the call
  bool repeated_ = false;         // rule 1 has been used for the server at hand
  ServerPtr again_;               // rule 1: to be asked once more
  size_t overloaded_ = 0;         // of this round's servers
  size_t unreached_ = 0;          // of them: no connection could be opened
  size_t silent_ = 0;             // of them: reached, and without an answer
  size_t lost_ = 0;               // of them, those that only a newer list makes up for
  bool waited_for_news_ = false;  // when this round had nobody left
  Micros shortest_advice_{0};
  Outcome last_{};
  std::string_view why_;
};

}  // namespace firn::client
