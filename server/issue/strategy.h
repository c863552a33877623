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

// Makes ids. One object may serve many tags (snowflake) or one (segment).
//
// 1. TryOne and Issue are called by any number of threads at once and never block: no I/O, no
//    sleep, no lock held over a wait. Another thread fetches what has to come from elsewhere,
//    while the call is parked.
// 2. An id is issued once. Ids that a call has got and then not used are lost, except by TakeBack.
// 3. A call that is refused before it has got an id has no effect.
// 4. After Close() has returned nothing is issued, not even by calls that had begun before.
class Strategy {
 public:
  virtual ~Strategy() = default;

  virtual std::string_view name() const = 0;

  // Prepares for calls. Called once, before anything else. An error is one of configuration; a
  // missing claim or store makes later calls refused instead.
  virtual Status Start() = 0;

  // The fast path for one id: true and the id, or false without an effect; Issue then succeeds or
  // reports the reason. Must not throw. Allocates nothing, except in the rare call that starts a
  // fetch of more numbers.
  virtual bool TryOne(Method method, int64_t* id) = 0;

  // Like TryOne, for up to `want` ids, which form one run.
  virtual bool TryRun(Method method, int64_t /*want*/, IdRun* run) {
    run->count = run->stride = 1;
    return TryOne(method, &run->first);
  }

  // The cursor from which TryOne takes its id, if it does nothing else: the caller may then take
  // from the cursor without a virtual call. Null otherwise. Constant; lives as long as the
  // strategy.
  virtual RangeCursor* cursor() { return nullptr; }

  // Adds runs to `call` until nothing is missing; never more ids than were requested.
  virtual Verdict Issue(IssueCall& call) = 0;

  // The call ends without its ids: these are lost. If some are missing, no plugin has seen the
  // others, and the strategy may issue them to another call. Any thread.
  virtual void TakeBack(const IssueCall&) {}

  // Whether the ids of a call that has them all may be issued by others meanwhile. Any thread.
  virtual bool HasDropped(const IssueCall&) const { return false; }

  // A lower bound of the next id; 0: none is known. Takes nothing. Any thread.
  virtual int64_t NextAtLeast() const { return 0; }

  // What a call for one id would be refused with now; empty if it would be served, perhaps after a
  // wait. Takes nothing and calls nothing else. Any thread.
  virtual std::optional<Refusal> WhyNot() const { return std::nullopt; }

  // Whether callers may get runs, whose ids they use later.
  virtual bool gives_runs() const { return true; }

  // Maximum ids per call as one run of consecutive numbers (Form::kOneRun); 0: it gives none.
  virtual int64_t one_run_max() const { return 0; }

  // Maximum ids per call as runs; a call for more is refused, never reduced.
  virtual int64_t count_max() const = 0;

  // Issues nothing after it has returned. No I/O; may be called again; never undone.
  virtual void Close() = 0;

  // Closes, then gives back the numbers that can be given back exactly. May wait for its own
  // threads, for a limited time; main's thread only.
  virtual void Stop() = 0;
};

}  // namespace firn
