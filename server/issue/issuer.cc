#include "server/issue/issuer.h"

#include <string>
#include <utility>

#include "common/quote.h"

namespace firn {
namespace {

constexpr size_t kNearMax = 3;
constexpr int32_t kDrainingRetryMs = 1;  // at another server, at once

Refusal Unknown(std::string_view tag, const std::vector<std::string>& near) {
  std::string message = "no tag " + Quoted(tag);
  for (size_t i = 0; i < near.size(); ++i) {
    message += (i == 0 ? "; there is '" : ", '") + near[i] + "'";
  }
  return {Reason::kUnknownTag, std::move(message), 0, false};
}

}  // namespace

Status Issuer::Set(TagBinding binding) { return table_.Set(std::move(binding)); }

void Issuer::Remove(std::string_view name) { table_.Remove(name); }

Refusal Issuer::RefuseUnknown(const Request& request) {
  Refusal refusal = Unknown(request.tag, table_.Near(request.tag, kNearMax));
  rejections_.OnRefusal(request, refusal);
  return refusal;
}

Verdict Issuer::Issue(IssueCall& call) {
  if (draining_.load(std::memory_order_acquire)) {
    return Refuse(call, {Reason::kDraining, "this server is going away", kDrainingRetryMs, true});
  }
  if (call.binding_ == nullptr) {
    const Verdict begun = Begin(call);
    if (begun == Verdict::kRefused) return begun;
  }
  Verdict verdict = Verdict::kRefused;
  try {
    verdict = call.binding_->strategy->Issue(call.demand_);
  } catch (const std::exception& e) {
    call.demand_.refusal = {Reason::kInternal, std::string("the strategy threw: ") + e.what()};
  } catch (...) {
    call.demand_.refusal = {Reason::kInternal, "the strategy threw"};
  }
  if (verdict == Verdict::kIssued) return Finish(call);
  if (verdict == Verdict::kRefused) return Refuse(call, std::move(call.demand_.refusal));
  return verdict;
}

// Everything that is checked once per call. The call has a binding when it may go on.
Verdict Issuer::Begin(IssueCall& call) {
  const Request& request = call.request_;
  const Binding* binding = call.tag_->binding();
  if (binding == nullptr) return Refuse(call, Unknown(request.tag, {}));
  const int64_t count_max = binding->strategy->count_max();
  if (request.count < 1 || request.count > count_max) {
    return Refuse(call, {Reason::kBadRequest, "count is " + std::to_string(request.count) +
                                                  ", it may be 1 to " + std::to_string(count_max)});
  }
  if (auto refusal = binding->plugins.Before(request)) return Refuse(call, *std::move(refusal));
  call.binding_ = binding;
  return Verdict::kIssued;
}

Verdict Issuer::Finish(IssueCall& call) {
  const PluginChain& plugins = call.binding_->plugins;
  if (plugins.empty()) return Verdict::kIssued;
  auto refusal = plugins.After(call.request_, call.demand_.runs);
  if (!refusal) return Verdict::kIssued;
  call.binding_ = nullptr;  // the plugins have been told
  return Refuse(call, *std::move(refusal));
}

const Refusal& Issuer::GiveUp(IssueCall& call) {
  Refuse(call, std::move(call.demand_.refusal));
  return call.refusal();
}

Verdict Issuer::Refuse(IssueCall& call, Refusal refusal) {
  call.demand_.runs.Clear();
  const Binding* binding = std::exchange(call.binding_, nullptr);
  if (binding != nullptr) binding->plugins.OnRefusal(call.request_, refusal);
  rejections_.OnRefusal(call.request_, refusal);
  return call.demand_.Refuse(std::move(refusal));
}

}  // namespace firn
