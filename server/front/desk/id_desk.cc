#include "server/front/desk/id_desk.h"

#include <utility>

#include "common/base/cat.h"
#include "common/base/quote.h"

namespace firn::front {

IdDesk::IdDesk(Issuer& issuer, DeskCounters& counters, Method method, std::string default_tag,
               TagRights* rights)
    : issuer_(issuer),
      counters_(counters),
      method_(method),
      default_tag_(std::move(default_tag)),
      rights_(rights == nullptr ? std::nullopt : std::optional<TagRights::Reader>(*rights)) {}

namespace {

std::string NoRight(const DoorCall& door, std::string_view tag) {
  if (!door.user.empty()) {
    return Cat("user ", Quoted(door.user), " has no right to ids of ", Quoted(tag));
  }
  if (door.names.empty()) {
    return Cat("the client shows no certificate with a name, and has no right to ids of ",
               Quoted(tag));
  }
  return Cat("the certificate of ", Quoted(door.names[0]), " gives no right to ids of ",
             Quoted(tag));
}

}  // namespace

IssueCall& IdDesk::Fresh() {
  // A call may still wait here if an exception was thrown.
  if (!call_ || call_->waits()) {
    call_ = {new IssueCall, [&issuer = issuer_](IssueCall* call) {
               if (call->waits()) issuer.GiveUp(*call);
               delete call;
             }};
  }
  return *call_;
}

std::optional<Refusal> IdDesk::WhyNotPermitted(std::string_view tag, const DoorCall& door) {
  if (!rights_ || rights_->Permit(door.names, door.user, NameOf(tag))) return std::nullopt;
  return Refusal{Reason::kRejected, NoRight(door, NameOf(tag))};
}

Verdict IdDesk::Ask(std::string_view tag, int64_t count, Form form, const DoorCall& door) {
  std::optional<Refusal> refusal = WhyNotPermitted(tag, door);
  lacks_right_ = refusal.has_value();
  if (refusal) {
    Refuse(*std::move(refusal));
    return Verdict::kRefused;
  }
  const Request request{NameOf(tag), count, form, method_, door.client, door.trace_id};
  const Tag* known = issuer_.Resolve(request.tag);
  if (known != nullptr) {
    Fresh().Begin(*known, request);
  } else {
    Fresh().Begin(request);
  }
  return Attempt(door);
}

Verdict IdDesk::Continue(WaitingIds waiting, const DoorCall& door) {
  std::optional<Refusal> refusal = WhyNotPermitted(waiting->request().tag, door);
  lacks_right_ = refusal.has_value();
  call_ = std::move(waiting);
  if (!lacks_right_) return Attempt(door);
  counters_.CountRefused(issuer_.GiveUp(*call_, *std::move(refusal)).reason);
  return Verdict::kRefused;
}

Verdict IdDesk::Attempt(const DoorCall& door) {
  call_->patience = door.patience;
  const Verdict verdict = issuer_.Issue(*call_);
  switch (verdict) {
    case Verdict::kIssued:
      counters_.CountIssued(*call_->tag(), static_cast<uint64_t>(call_->request().count));
      return verdict;
    case Verdict::kRefused:
      break;
    case Verdict::kWait:
      if (!door.last || call_->has_all_ids()) return verdict;
      issuer_.GiveUp(*call_);
      break;
  }
  counters_.CountRefused(call_->refusal().reason);
  return Verdict::kRefused;
}

void IdDesk::Refuse(Refusal refusal) {
  counters_.CountRefused(refusal.reason);
  Fresh().Refuse(std::move(refusal));
}

}  // namespace firn::front
