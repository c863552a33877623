#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string_view>

#include "common/time/clock.h"
#include "server/issue/issue_call.h"
#include "server/issue/plugin.h"
#include "server/issue/rejection_handler.h"
#include "server/issue/strategy.h"
#include "server/issue/tag_seeker.h"
#include "server/issue/tag_table.h"

namespace firn {

// Runs a tag's strategy and plugins for each call, and turns each failure into a refusal. Does no
// I/O, creates no threads and never blocks.
//
//   const Tag* tag = issuer.Resolve("order");
//   if (int64_t id; tag != nullptr && issuer.TryOne(*tag, Method::kThrift, &id)) answer(id);
//   else { tag != nullptr ? call.Begin(*tag, request) : call.Begin(request);
//          switch (issuer.Issue(call)) { ... kWait: park, come back with Issue(call) ... } }
//
// Thread-safe. Set, Remove and SetDefault take a lock; calls only read.
class Issuer {
 public:
  // Both must outlive this. `rejections` is notified of every refusal returned. The clock limits
  // how often names of unknown tags are compared with known ones.
  explicit Issuer(RejectionHandler& rejections, const Clock& clock = SystemClock())
      : rejections_(rejections), clock_(clock) {}

  // --- tags, at any time -------------------------------------------------------------------------

  // Defines or changes the tag; calls in progress continue with the earlier definition. Does not
  // start or close strategies, because one strategy may serve several tags: the caller must start
  // the strategy before, and close it when no tag uses it. kExhausted beyond TagTable's limits.
  Status Set(TagBinding binding);

  // Removes the tag: later calls are refused as unknown. Does nothing if the tag is unknown.
  void Remove(std::string_view name);

  // Sets the strategy and plugins for undefined tags; nullopt: undefined tags are refused as
  // unknown.
  void SetDefault(std::optional<TagBinding> binding) { table_.SetDefault(std::move(binding)); }

  // `seeker` looks up a tag before it is refused as unknown. It must outlive this. Call before
  // serving.
  void SetSeeker(TagSeeker& seeker) { seeker_ = &seeker; }

  // --- calls ------------------------------------------------------------------------------------

  // Returns the tag's handle, which is valid as long as the issuer, even if the tag is changed or
  // removed. Null if the name is unknown: Issue then looks it up and reports the result. Lock-free.
  const Tag* Resolve(std::string_view name) const { return table_.Find(name); }

  // The fast path: issues one id of a tag without plugins. Returns false, without an effect, if the
  // call has to wait, be refused, or run plugins: then call Issue.
  bool TryOne(const Tag& tag, Method method, int64_t* id) const {
    const Binding* binding = tag.binding();
    if (binding == nullptr || draining_.load(std::memory_order_relaxed)) return false;
    if (binding->cursor != nullptr) return binding->cursor->TakeOne(id);
    return binding->plain && binding->strategy->TryOne(method, id);
  }

  // Like TryOne, for up to `want` such calls at once: their ids form one run.
  bool TryRun(const Tag& tag, Method method, int64_t want, IdRun* run) const {
    const Binding* binding = tag.binding();
    if (binding == nullptr || draining_.load(std::memory_order_relaxed)) return false;
    if (binding->cursor != nullptr) {
      run->count = run->stride = 1;
      return binding->cursor->TakeOne(&run->first);
    }
    return binding->plain && binding->strategy->TryRun(method, want, run);
  }

  // Returns whether equal calls of this tag may wait as one joint call (IssueCall::BeginJoint).
  bool Joins(const Tag& tag) const {
    const Binding* binding = tag.binding();
    return binding != nullptr && Joins(*binding);
  }

  // Returns a lower bound of the tag's next id; 0 if it is unknown until an id is taken.
  int64_t NextAtLeast(const Tag& tag) const {
    const Binding* binding = tag.binding();
    if (binding == nullptr || binding->plugins.changes_ids()) return 0;
    return binding->strategy->NextAtLeast();
  }

  // Returns the refusal that a call for one id of this tag would get now from its strategy; empty
  // if it would be served, perhaps after a wait. For readiness checks: takes no id, and does not
  // notify the rejection handler.
  std::optional<Refusal> WhyNot(std::string_view tag) const;

  // Begins the call, or continues it after a wait. kIssued: call.runs() are exactly the requested
  // ids; for a joint call, the ids of the first of its calls. kWait: after call.ask_again_in(),
  // pass the same call again, or call GiveUp. kRefused: call.refusal() is the answer, and the call
  // is over.
  Verdict Issue(IssueCall& call);

  // Ends a waiting call after its timeout. Returns the refusal.
  const Refusal& GiveUp(IssueCall& call);
  const Refusal& GiveUp(IssueCall& call, Refusal why);

  // Refuses every call with DRAINING from now on. A waiting call is refused at its next attempt.
  void Drain() { draining_.store(true); }

 private:
  static bool Joins(const Binding& binding) {
    return binding.plain && binding.strategy->joins_calls();
  }
  Refusal Unknown(std::string_view tag) const;
  bool MaySuggest() const;
  Verdict Attempt(IssueCall& call);
  static void KeepName(IssueCall& call);
  Verdict Begin(IssueCall& call);
  Verdict Seek(IssueCall& call);
  Verdict Finish(IssueCall& call);
  Verdict Refuse(IssueCall& call, Refusal refusal);

  RejectionHandler& rejections_;
  const Clock& clock_;
  mutable std::atomic<int64_t> suggested_until_ms_{
      0};  // the suggestion budget is spent up to this time
  TagSeeker* seeker_ = nullptr;
  std::atomic<bool> draining_{false};
  TagTable table_;
};

}  // namespace firn
