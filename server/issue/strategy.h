#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "common/base/status.h"
#include "common/id/id_run.h"
#include "server/issue/issue_call.h"
#include "server/issue/refusal.h"
#include "server/issue/request.h"

namespace firn {

class RangeCursor;

// Issues ids. One object may serve many tags (snowflake) or one (segment).
//
// 1. TryOne and Issue are called by any number of threads at once and never block: no I/O, no
//    sleep, no lock held during a wait. Another thread does the I/O while the call is parked.
// 2. An id is issued once. Ids that a call has taken and does not use are lost, unless TakeBack
//    reuses them.
// 3. A call that is refused before it has taken an id has no effect.
// 4. After Close() has returned, nothing is issued, not even by calls that had begun before.
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::string_view name() const = 0;

  // Prepares for calls. Called once, before all other functions. An error means an invalid
  // configuration. If a claim or store is missing, Start succeeds and later calls are refused.
  virtual Status Start() = 0;

  // The fast path for one id. Returns true and sets the id, or returns false without an effect;
  // then Issue succeeds or reports the reason. Must not throw. Allocates nothing, except in the
  // rare call that starts a fetch of more numbers.
  virtual bool TryOne(Method method, int64_t* id) = 0;

  // Like TryOne, for up to `want` ids, which form one run.
  virtual bool TryRun(Method method, int64_t /*want*/, IdRun* run) {
    run->count = run->stride = 1;
    return TryOne(method, &run->first);
  }

  // Returns the cursor from which TryOne takes its id, if TryOne does nothing else: the caller may
  // then use the cursor without a virtual call. Null otherwise. Constant; lives as long as the
  // strategy.
  virtual RangeCursor* cursor() { return nullptr; }

  // Adds runs to `call` until it has all requested ids; never adds more.
  virtual Verdict Issue(IssueCall& call) = 0;

  // Called when a call with a ticket or some ids ends without using its ids, which are lost. If the
  // call does not have all its ids, no plugin has processed them, and the strategy may issue them
  // to another call. Any thread.
  virtual void TakeBack(const IssueCall&) {}

  // For a call that has all its ids: returns whether they must not be used any more, because other
  // servers may issue them. Any thread.
  virtual bool HasDropped(const IssueCall&) const { return false; }

  // Returns a lower bound of the next id; 0 if it is unknown. Takes no id. Any thread.
  virtual int64_t NextAtLeast() const { return 0; }

  // Returns the refusal that a call for one id would get now; empty if it would be served, perhaps
  // after a wait. Takes no id and runs no callback. Any thread.
  virtual std::optional<Refusal> WhyNot() const { return std::nullopt; }

  // Returns whether equal calls may wait as one joint call (IssueCall::BeginJoint).
  virtual bool joins_calls() const { return false; }

  // Returns whether callers may get runs, whose ids they can use later.
  virtual bool gives_runs() const { return true; }

  // Maximum ids per call as one run of consecutive numbers (Form::kOneRun); 0: not supported.
  virtual int64_t one_run_max() const { return 0; }

  // Maximum ids per call as runs; a call for more is refused.
  virtual int64_t count_max() const = 0;

  // Stops issuing: after the return, nothing is issued. Permanent; does no I/O; may be called
  // again.
  virtual void Close() = 0;

  // Closes, then gives back the numbers that can be given back exactly. May wait for the strategy's
  // own threads for a limited time. Main thread only.
  virtual void Stop() = 0;
};

}  // namespace firn
