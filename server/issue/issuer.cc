#include "server/issue/issuer.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"

namespace firn {
namespace {

constexpr size_t kNearMax = 3;
constexpr int32_t kDrainingRetryMs = 1;  // another server can serve the call at once
constexpr int32_t kUnansweredRetryMs = 100;
constexpr int32_t kLookUpRetryMs = 1'000;  // the lookup budget is per second
constexpr std::chrono::milliseconds kSeekAgain{2};

// Comparing a name with 1,000 others takes an IO thread about 50 us. The limit keeps requests for
// unknown tags from slowing down other clients. After a pause, the first kSuggestionsAtOnce
// refusals contain suggestions.
constexpr int64_t kSuggestEveryMs = 10;
constexpr int64_t kSuggestionsAtOnce = 20;

Refusal Draining() {
  return {Reason::kDraining, "this server is shutting down", kDrainingRetryMs, true};
}

Refusal NoRuns() {
  return {Reason::kBadRequest,
          "this tag gives no runs, because numbers that a client keeps could be of a past period, "
          "or be used after larger ones; request single numbers",
          0, false};
}

Refusal NoConsecutiveNumbers() {
  return {Reason::kBadRequest,
          "this tag gives no consecutive numbers, because it has no ranges in memory; request "
          "single ids",
          0, false};
}

Refusal Redefined() {
  return {Reason::kNotReady, "the tag's definition has just changed; try again", 1, true};
}

Refusal LeftEarly() {
  return {Reason::kOverloaded, "the caller left before its ids were ready", 0, true};
}

bool IsOneRun(const Runs& runs) {
  return runs.size() == 1 && (runs[0].stride == 1 || runs[0].count == 1);
}

// Concerns this tag only: this server may be able to serve other tags.
Refusal RegistryUnavailable(Reason reason, std::string_view tag, std::string_view cause) {
  return {reason, Cat("cannot check whether tag ", Quoted(tag), " exists: the registry ", cause),
          kUnansweredRetryMs, true};
}

// The tag may have been created a moment ago, so this is not final.
Refusal NotNow(std::string_view tag) {
  return {Reason::kOverloaded,
          Cat("tag ", Quoted(tag),
              " is unknown here, and can be neither looked up nor created at this moment"),
          kLookUpRetryMs, true};
}

std::string NotSinceRestore() {
  return "no tags are created by their first use since the cluster was restored; run " +
         PrintCommand(PrintedCommand::kSet, {"default_strategy=counter", "counter_start=N"}) +
         " with a number above all that such tags have issued";
}

Refusal NotCreated(std::string_view tag, std::string_view why) {
  return {Reason::kUnknownTag, Cat("no tag ", Quoted(tag), ": ", why), 0, false};
}

}  // namespace

Status Issuer::Set(TagBinding binding) { return table_.Set(std::move(binding)); }

void Issuer::Remove(std::string_view name) { table_.Remove(name); }

bool Issuer::MaySuggest() const {
  const int64_t now = clock_.Boot().ms();
  int64_t spent = suggested_until_ms_.load(std::memory_order_relaxed);
  if (spent > now + (kSuggestionsAtOnce - 1) * kSuggestEveryMs) return false;
  // A thread that loses the race adds no suggestion.
  return suggested_until_ms_.compare_exchange_strong(spent, std::max(spent, now) + kSuggestEveryMs);
}

Refusal Issuer::Unknown(std::string_view tag) const {
  std::string message = "no tag " + Quoted(tag);
  std::vector<std::string> near;
  if (MaySuggest()) near = table_.Near(tag, kNearMax);
  for (size_t i = 0; i < near.size(); ++i) {
    message += Cat(i == 0 ? "; there is '" : ", '", near[i], "'");
  }
  return {Reason::kUnknownTag, std::move(message), 0, false};
}

std::optional<Refusal> Issuer::WhyNot(std::string_view name) const {
  if (draining_.load(std::memory_order_acquire)) return Draining();
  const Tag* const tag = Resolve(name);
  const Binding* const binding = tag == nullptr ? nullptr : tag->binding();
  return binding == nullptr ? std::optional(Unknown(name)) : binding->strategy->WhyNot();
}

Verdict Issuer::Issue(IssueCall& call) {
  const Verdict verdict = Attempt(call);
  const bool waits = verdict == Verdict::kWait;
  if (!waits) call.place.reset();
  // Must precede setting waits_: copying the name may throw bad_alloc.
  if (waits && !call.waits_) KeepName(call);
  call.waits_ = waits;
  return verdict;
}

// The memory of the request may be freed before the call continues.
void Issuer::KeepName(IssueCall& call) {
  std::string_view& name = call.request_.tag;
  if (call.tag_ != nullptr && call.tag_->name() == name) {
    name = call.tag_->name();
  } else {
    call.name_ = std::make_shared<const std::string>(name);
    name = *call.name_;
  }
}

Verdict Issuer::Attempt(IssueCall& call) {
  if (call.has_all_ids()) {
    if (!call.binding_->strategy->HasDropped(call)) return Finish(call);
    return Refuse(call, {Reason::kStoreDown, "the numbers of this call were dropped", 0, true});
  }
  if (draining_.load(std::memory_order_acquire)) return Refuse(call, Draining());
  if (call.binding_ == nullptr) {
    const Verdict begun = Begin(call);
    if (begun != Verdict::kIssued) return begun;
  }
  Verdict verdict = Verdict::kRefused;
  try {
    verdict = call.binding_->strategy->Issue(call);
  } catch (const std::exception& e) {
    call.refusal_ = {Reason::kInternal, Cat("the strategy threw: ", e.what())};
  } catch (...) {
    call.refusal_ = {Reason::kInternal, "the strategy threw"};
  }
  if (verdict == Verdict::kIssued) return Finish(call);
  if (verdict == Verdict::kRefused) return Refuse(call, std::move(call.refusal_));
  return verdict;
}

// Does the checks that are done once per call. Sets the call's binding if the call may continue.
Verdict Issuer::Begin(IssueCall& call) {
  const Request& request = call.request_;
  if (call.tag_ == nullptr) call.tag_ = Resolve(request.tag);
  const Binding* binding = call.tag_ != nullptr ? call.tag_->binding() : nullptr;
  if (binding == nullptr) return Seek(call);
  if (call.joint_ && !Joins(*binding)) return Refuse(call, Redefined());
  const int64_t count_max = binding->strategy->count_max();
  if (request.count < 1 || request.count > count_max) {
    return Refuse(call, {Reason::kBadRequest,
                         Cat("count is ", request.count, ", it may be 1 to ", count_max)});
  }
  if (request.form == Form::kRuns && !binding->strategy->gives_runs())
    return Refuse(call, NoRuns());
  if (request.form == Form::kOneRun) {
    const int64_t most = binding->strategy->one_run_max();
    if (most == 0) return Refuse(call, NoConsecutiveNumbers());
    if (request.count > most) {
      return Refuse(call, {Reason::kBadRequest, Cat("count is ", request.count,
                                                    "; consecutive numbers of this tag are "
                                                    "at most its step, ",
                                                    most)});
    }
  }
  if (auto refusal = binding->plugins.Before(request)) return Refuse(call, *std::move(refusal));
  call.binding_ = binding;
  return Verdict::kIssued;
}

// A tag is refused as unknown only after a lookup of its definition that began after the call
// arrived.
Verdict Issuer::Seek(IssueCall& call) {
  using Found = TagSeeker::Found;
  const std::string_view name = call.request_.tag;
  call.tag_ = nullptr;
  const bool may_create = call.request_.may_create;
  switch (seeker_ != nullptr ? seeker_->Seek(name, call.sought_, may_create) : Found::kNothing) {
    case Found::kLooking:
      // A client with only one server retries there only if the reason is OVERLOADED.
      return call.Wait(kSeekAgain,
                       RegistryUnavailable(Reason::kOverloaded, name, "has not answered in time"));
    case Found::kUnanswered:
      return Refuse(call, RegistryUnavailable(Reason::kStoreDown, name, "does not answer"));
    case Found::kLater:
      return Refuse(call, NotNow(name));
    case Found::kNoRight:
      return Refuse(call, NotCreated(name, "this call has no right to create it by its first use"));
    case Found::kOtherEra:
      return Refuse(call, NotCreated(name, NotSinceRestore()));
    case Found::kFull:
      return Refuse(call, NotCreated(name, "no more tags can be created by their first use"));
    case Found::kNothing:
      break;
  }
  return Refuse(call, Unknown(name));
}

Verdict Issuer::Finish(IssueCall& call) {
  const PluginChain& plugins = call.binding_->plugins;
  if (plugins.empty()) return Verdict::kIssued;
  if (auto refusal = plugins.After(call.request_, call.runs_, call.work_)) {
    return Refuse(call, *std::move(refusal));
  }
  if (call.has_all_ids()) return call.Wait(std::chrono::microseconds(0), LeftEarly());
  if (call.request_.form == Form::kOneRun && !IsOneRun(call.runs_)) {
    return Refuse(call, {Reason::kRejected, "a plugin of this tag changed the numbers"});
  }
  return Verdict::kIssued;
}

const Refusal& Issuer::GiveUp(IssueCall& call) { return GiveUp(call, std::move(call.refusal_)); }

const Refusal& Issuer::GiveUp(IssueCall& call, Refusal why) {
  Refuse(call, std::move(why));
  call.place.reset();
  return call.refusal();
}

Verdict Issuer::Refuse(IssueCall& call, Refusal refusal) {
  const Binding* binding = std::exchange(call.binding_, nullptr);
  const bool has_state = call.ticket != 0 || call.missing() < call.request_.count;
  if (binding != nullptr && has_state) binding->strategy->TakeBack(call);
  call.runs_.Clear();
  call.work_.Clear();
  call.waits_ = false;
  if (binding != nullptr) binding->plugins.OnRefusal(call.request_, refusal);
  try {
    rejections_.OnRefusal(call.request_, refusal);
  } catch (...) {  // as for an exception of a plugin, the call still gets its refusal
  }
  return call.Refuse(std::move(refusal));
}

void IssueCall::AppendText(int64_t id, WallMs now, std::string& out) const {
  if (binding_->text == nullptr) {
    out += Cat(id);
  } else {
    binding_->text->AppendTo(out, id, now);
  }
}

}  // namespace firn
