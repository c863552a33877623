#include "server/front/desk/id_desk.h"

#include <utility>

namespace firn::front {

// A call and the tag's name that it refers to. Parked, it is given up when its connection ends.
class IdDesk::Call final : public ParkedCall {
 public:
  explicit Call(Issuer& issuer) : issuer_(issuer) {}
  ~Call() override {
    if (waits_) issuer_.GiveUp(issue_);
  }

  // `tag`: null when the name is not known yet.
  void Begin(const Tag* tag, Request request) {
    name_ = request.tag;
    request.tag = name_;
    tag != nullptr ? issue_.Begin(*tag, request) : issue_.Begin(request);
  }

  Verdict Go() {
    const Verdict verdict = issuer_.Issue(issue_);
    waits_ = verdict == Verdict::kWait;
    return verdict;
  }

  const Refusal& GiveUp() {
    waits_ = false;
    return issuer_.GiveUp(issue_);
  }

  const IssueCall& issue() const { return issue_; }

 private:
  Issuer& issuer_;
  std::string name_;
  IssueCall issue_;
  bool waits_ = false;
};

IdDesk::IdDesk(Issuer& issuer, DeskCounters& counters, Method method, std::string default_tag)
    : issuer_(issuer), counters_(counters), method_(method), default_tag_(std::move(default_tag)) {}

IdDesk::~IdDesk() = default;

const Runs& IdDesk::runs() const { return call_->issue().runs(); }

void IdDesk::AppendText(int64_t id, WallMs now, std::string& out) const {
  call_->issue().AppendText(id, now, out);
}

Verdict IdDesk::Ask(std::string_view tag, int64_t count, Form form, Attempt& attempt) {
  if (attempt.parked) {
    call_.reset(static_cast<Call*>(attempt.parked.release()));
  } else {
    Begin({NameOf(tag), count, form, method_, attempt.client});
  }
  return Answer(call_->Go(), attempt);
}

void IdDesk::Begin(const Request& request) {
  if (!call_) call_ = std::make_unique<Call>(issuer_);
  call_->Begin(issuer_.Resolve(request.tag), request);
}

Verdict IdDesk::Answer(Verdict verdict, Attempt& attempt) {
  switch (verdict) {
    case Verdict::kIssued:
      counters_.CountIssued(*call_->issue().tag(),
                            static_cast<uint64_t>(call_->issue().request().count));
      return verdict;
    case Verdict::kRefused:
      refusal_ = &call_->issue().refusal();
      break;
    case Verdict::kWait:
      if (!attempt.last) {
        again_us_ = call_->issue().ask_again_in().count();
        attempt.parked = std::move(call_);
        return verdict;
      }
      refusal_ = &call_->GiveUp();
      break;
  }
  counters_.CountRefused(refusal_->reason);
  return Verdict::kRefused;
}

Verdict IdDesk::Refuse(Refusal refusal) {
  own_refusal_ = std::move(refusal);
  refusal_ = &own_refusal_;
  counters_.CountRefused(own_refusal_.reason);
  return Verdict::kRefused;
}

}  // namespace firn::front
