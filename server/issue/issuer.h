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

// From tags to ids: finds a tag's strategy, runs the tag's plugins around it, and turns every
// failure into a refusal. It does no I/O, creates no threads and never blocks.
//
//   const Tag* tag = issuer.Resolve("order");
//   if (int64_t id; tag != nullptr && issuer.TryOne(*tag, Method::kThrift, &id)) answer(id);
//   else { tag != nullptr ? call.Begin(*tag, request) : call.Begin(request);
//          switch (issuer.Issue(call)) { ... kWait: park, come back with Issue(call) ... } }
//
// Thread-safe. Set, Remove and SetDefault take a lock; everything else reads.
class Issuer {
 public:
  // Both must outlive this. `rejections` is called for every refusal that is answered; the clock
  // limits how often unknown tags are compared with known ones.
  explicit Issuer(RejectionHandler& rejections, const Clock& clock = SystemClock())
      : rejections_(rejections), clock_(clock) {}

  // --- tags, at any time -------------------------------------------------------------------------

  // Defines the tag from now on; calls in progress end as they began. Strategies must be started
  // before and closed afterwards by their creator: one may serve several tags.
  // kExhausted beyond TagTable's limits.
  Status Set(TagBinding binding);

  // The tag is refused as unknown from now on. Does nothing if it is already.
  void Remove(std::string_view name);

  // Sets what serves undefined tags; nullopt: they are unknown.
  void SetDefault(std::optional<TagBinding> binding) { table_.SetDefault(std::move(binding)); }

  // Is asked before a tag is refused as unknown; must outlive this. Call before serving.
  void SetSeeker(TagSeeker& seeker) { seeker_ = &seeker; }

  // --- calls ------------------------------------------------------------------------------------

  // The tag's handle, valid as long as the issuer, even if the tag is changed or removed. Null if
  // nothing serves it: Issue then looks it up and reports the result. Lock-free.
  const Tag* Resolve(std::string_view name) const { return table_.Find(name); }

  // The fast path: one id of a tag without plugins. False, without an effect, whenever there is
  // anything to explain, to wait for, or to run around it: then call Issue.
  bool TryOne(const Tag& tag, Method method, int64_t* id) const {
    const Binding* binding = tag.binding();
    if (binding == nullptr || draining_.load(std::memory_order_relaxed)) return false;
    if (binding->cursor != nullptr) return binding->cursor->TakeOne(id);
    return binding->plain && binding->strategy->TryOne(method, id);
  }

  // The same for the ids of up to `want` such calls, of which there is a run.
  bool TryRun(const Tag& tag, Method method, int64_t want, IdRun* run) const {
    const Binding* binding = tag.binding();
    if (binding == nullptr || draining_.load(std::memory_order_relaxed)) return false;
    if (binding->cursor != nullptr) {
      run->count = run->stride = 1;
      return binding->cursor->TakeOne(&run->first);
    }
    return binding->plain && binding->strategy->TryRun(method, want, run);
  }

  // A lower bound of the tag's next id, where it is known before one is taken; otherwise 0.
  int64_t NextAtLeast(const Tag& tag) const {
    const Binding* binding = tag.binding();
    if (binding == nullptr || binding->plugins.changes_ids()) return 0;
    return binding->strategy->NextAtLeast();
  }

  // What a call for one id of this tag would be refused with now, without its plugins; empty if it
  // would be served, perhaps after a wait. For readiness checks: it reports no refusal to the
  // handler, and takes nothing.
  std::optional<Refusal> WhyNot(std::string_view tag) const;

  // Begins the call, or continues it after a wait. kIssued: call.runs() are exactly the requested
  // ids. kWait: call again with the same call after call.ask_again_in(), or GiveUp. kRefused:
  // call.refusal() is the answer, and the call is over.
  Verdict Issue(IssueCall& call);

  // Ends a waiting call after its timeout. Returns the answer.
  const Refusal& GiveUp(IssueCall& call);

  // From now on every call is refused with DRAINING; a waiting one at its next attempt.
  void Drain() { draining_.store(true); }

 private:
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
      0};  // the budget of suggestions is spent to here
  TagSeeker* seeker_ = nullptr;
  std::atomic<bool> draining_{false};
  TagTable table_;
};

}  // namespace firn
