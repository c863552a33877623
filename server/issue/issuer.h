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

// From tags to ids: finds a tag's strategy, runs the tag's plugins around it, and turns whatever
// goes wrong into a refusal. It does no I/O, makes no threads and never blocks.
//
//   const Tag* tag = issuer.Resolve("order");
//   if (int64_t id; tag != nullptr && issuer.TryOne(*tag, Method::kThrift, &id)) answer(id);
//   else { tag != nullptr ? call.Begin(*tag, request) : call.Begin(request);
//          switch (issuer.Issue(call)) { ... kWait: park, come back with Issue(call) ... } }
//
// Thread-safe. Set, Remove and SetDefault take a lock; everything else reads.
class Issuer {
 public:
  // Both must outlive this. `rejections` is told of every refusal that is answered; the clock says
  // how often a tag that nobody knows is compared with those that are known.
  explicit Issuer(RejectionHandler& rejections, const Clock& clock = SystemClock())
      : rejections_(rejections), clock_(clock) {}

  // --- tags, at any time -------------------------------------------------------------------------

  // The tag is served like this from now on; calls on their way end as they began. Strategies are
  // started before and closed afterwards by whoever made them: one may serve several tags.
  // kExhausted beyond TagTable's limits.
  Status Set(TagBinding binding);

  // The tag is refused as unknown from now on. Nothing happens when it is.
  void Remove(std::string_view name);

  // What serves tags that nobody has set; nothing: they are unknown.
  void SetDefault(std::optional<TagBinding> binding) { table_.SetDefault(std::move(binding)); }

  // Who is asked before a tag is refused as unknown; outlives this. Before serving.
  void SetSeeker(TagSeeker& seeker) { seeker_ = &seeker; }

  // --- calls ------------------------------------------------------------------------------------

  // The tag's handle, good as long as the issuer, also when the tag is changed or removed. Null
  // when nothing serves it: Issue then looks for it, and says so. Lock-free.
  const Tag* Resolve(std::string_view name) const { return table_.Find(name); }

  // The short way: one id of a tag without plugins. False, with no trace, whenever there is
  // anything to explain, to wait for, or to run around it: then Issue.
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

  // What a call for one id of this tag would be refused with at this moment, its plugins left out;
  // empty when it would be served, perhaps after a wait. For those who ask whether to ask: nobody
  // is told of a refusal, and nothing is taken.
  std::optional<Refusal> WhyNot(std::string_view tag) const;

  // Begins the call, or goes on with it after a wait. kIssued: call.runs() are exactly the ids
  // asked for. kWait: come back with the same call in call.ask_again_in(), or GiveUp. kRefused:
  // call.refusal() is the answer, and the call is over.
  Verdict Issue(IssueCall& call);

  // The caller's patience with a waiting call has ended; the call is over. The answer.
  const Refusal& GiveUp(IssueCall& call);

  // From now on every call is refused with DRAINING; a waiting one too, when it comes back.
  void Drain() { draining_.store(true); }

 private:
  Refusal Unknown(std::string_view tag) const;
  bool MaySuggest() const;
  Verdict Attempt(IssueCall& call);
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
