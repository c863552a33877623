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

// Finds a tag's strategy, runs the tag's plugins around it, and turns every failure into a refusal.
// Does no I/O, creates no threads and never blocks.
//
//   const Tag* tag = issuer.Resolve("order");
//   if (int64_t id; tag != nullptr && issuer.TryOne(*tag, Method::kThrift, &id)) answer(id);
//   else { tag != nullptr ? call.Begin(*tag, request) : call.Begin(request);
//          switch (issuer.Issue(call)) { ... kWait: park, come back with Issue(call) ... } }
//
// Thread-safe. Set, Remove and SetDefault take a lock; calls only read.
class Issuer {
 public:
  // Both must outlive this. `rejections` is called for every refusal that is returned. The clock
  // limits how often the names of unknown tags are compared with known ones.
  explicit Issuer(RejectionHandler& rejections, const Clock& clock = SystemClock())
      : rejections_(rejections), clock_(clock) {}

  // --- tags, at any time -------------------------------------------------------------------------

  // Defines the tag from now on; calls in progress continue with the earlier definition. Its
  // creator must start a strategy before and close it afterwards, because one strategy may serve
  // several tags. kExhausted beyond TagTable's limits.
  Status Set(TagBinding binding);

  // Refuses the tag as unknown from now on. Does nothing if the tag is unknown.
  void Remove(std::string_view name);

  // Sets the strategy and plugins for undefined tags; nullopt: undefined tags are refused as
  // unknown.
  void SetDefault(std::optional<TagBinding> binding) { table_.SetDefault(std::move(binding)); }

  // `seeker` looks up a tag before it is refused as unknown. It must outlive this. Call before
  // serving.
  void SetSeeker(TagSeeker& seeker) { seeker_ = &seeker; }

  // --- calls ------------------------------------------------------------------------------------

  // The tag's handle, valid as long as the issuer, even if the tag is changed or removed. Null if
  // nothing serves the name: Issue then looks it up and reports the result. Lock-free.
  const Tag* Resolve(std::string_view name) const { return table_.Find(name); }

  // The fast path: one id of a tag without plugins. Returns false, without an effect, if the call
  // has to wait, be refused, or run plugins: then call Issue.
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

  // Ends a waiting call after its timeout, or for `why`. Returns the answer.
  const Refusal& GiveUp(IssueCall& call);
  const Refusal& GiveUp(IssueCall& call, Refusal why);

  // Refuses every call with DRAINING from now on. A waiting call is refused at its next attempt.
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
