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
  // The previous call still waits here if an exception has ended its processing.
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

bool IdDesk::IsPermitted(std::string_view tag, const DoorCall& door, uint64_t calls) {
  std::optional<Refusal> refusal = WhyNotPermitted(tag, door);
  lacks_right_ = refusal.has_value();
  if (refusal) Refuse(*std::move(refusal), calls);
  return !lacks_right_;
}

// A tag without a binding is deleted.
bool IdDesk::MayCreate(const Tag* tag, const DoorCall& door) {
  const bool undefined = tag == nullptr || tag->binding() == nullptr;
  return undefined && (!rights_ || rights_->PermitCreation(door.names, door.user));
}

Verdict IdDesk::Ask(std::string_view tag, int64_t count, Form form, const DoorCall& door) {
  if (!IsPermitted(tag, door, 1)) return Verdict::kRefused;
  Request request{NameOf(tag), count, form, method_, door.client, door.trace_id};
  const Tag* known = issuer_.Resolve(request.tag);
  request.may_create = MayCreate(known, door);
  if (known != nullptr) {
    Fresh().Begin(*known, request);
  } else {
    Fresh().Begin(request);
  }
  return Attempt(door);
}

Verdict IdDesk::AskJointly(const Tag& tag, int64_t calls, const DoorCall& door) {
  if (!IsPermitted(tag.name(), door, static_cast<uint64_t>(calls))) return Verdict::kRefused;
  Request request{tag.name(), calls, Form::kNumbers, method_, door.client, door.trace_id};
  request.may_create = MayCreate(&tag, door);
  Fresh().BeginJoint(tag, request);
  return Attempt(door);
}

Verdict IdDesk::Continue(WaitingIds waiting, const DoorCall& door) {
  std::optional<Refusal> refusal = WhyNotPermitted(waiting->request().tag, door);
  lacks_right_ = refusal.has_value();
  call_ = std::move(waiting);
  if (!lacks_right_) return Attempt(door);
  issuer_.GiveUp(*call_, *std::move(refusal));
  return CountRefused();
}

Verdict IdDesk::Attempt(const DoorCall& door) {
  call_->patience = door.patience;
  const Verdict verdict = issuer_.Issue(*call_);
  switch (verdict) {
    case Verdict::kIssued:
      CountIssued();
      return verdict;
    case Verdict::kRefused:
      break;
    case Verdict::kWait:
      if (!door.last || call_->has_all_ids()) return verdict;
      issuer_.GiveUp(*call_);
      break;
  }
  return CountRefused();
}

void IdDesk::CountIssued() {
  const auto ids = static_cast<uint64_t>(call_->request().count - call_->missing());
  counters_.CountIssued(*call_->tag(), ids, call_->joint() ? ids : 1);
}

Verdict IdDesk::CountRefused() {
  counters_.CountRefused(call_->refusal().reason, call_->calls());
  return Verdict::kRefused;
}

void IdDesk::Refuse(Refusal refusal, uint64_t calls) {
  counters_.CountRefused(refusal.reason, calls);
  Fresh().Refuse(std::move(refusal));
}

}  // namespace firn::front
