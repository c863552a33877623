#pragma once

#include <chrono>
#include <cstdint>
#include <utility>

#include "server/front/desk/id_desk.h"
#include "server/front/net/buffers.h"
#include "server/front/net/protocol.h"

namespace firn::front {

// Equal requests at the front of a connection's input, for one id each, that wait as one call. They
// are answered in their order, in parts: whenever ids arrive, the first ones get them, and a new
// call is made for the rest, whose time starts again. A refusal answers all that are left.
//
// `Answers` writes for one protocol, and may be moved:
//
//     // Whether a call may wait longer than others for the registry (IssueCall::waits_at_most).
//     static constexpr bool kWaitsLong;
//     // Whether the connection may still ask; otherwise answers the `left` ones.
//     bool MayAsk(int64_t left, DoorCall& door, OutBuffer& out);
//     // Answers the first ones with these ids.
//     void Write(const Runs& ids, OutBuffer& out);
//     // Answers the `left` ones with the desk's refusal.
//     void Refuse(int64_t left, OutBuffer& out);
template <typename Answers>
class JointCalls {
 public:
  // The tag Joins at the desk. `patience`: of each part.
  JointCalls(IdDesk& desk, const Tag& tag, int64_t calls, std::chrono::milliseconds patience,
             Answers answers)
      : desk_(&desk),
        tag_(&tag),
        calls_(calls),
        left_(calls),
        patience_(patience),
        answers_(std::move(answers)) {}

  // Serves all of them. The step consumes nothing.
  ServeStep Begin(DoorCall& door, OutBuffer& out) && {
    return std::move(*this).Go(desk_->AskJointly(*tag_, left_, door), false, door, out);
  }

 private:
  ServeStep Go(Verdict verdict, bool is_next, DoorCall& door, OutBuffer& out) && {
    while (verdict == Verdict::kIssued) {
      const Runs& ids = desk_->call().runs();
      left_ -= ids.count();
      answers_.Write(ids, out);
      if (left_ == 0) return Served();
      door.patience = patience_;
      door.last = false;
      is_next = true;
      verdict = desk_->AskJointly(*tag_, left_, door);
    }
    if (verdict == Verdict::kRefused) {
      answers_.Refuse(left_, out);
      return Served();
    }
    ServeStep step = desk_->Park(
        [self = std::move(*this)](WaitingIds waiting, DoorCall& same, OutBuffer& to) mutable {
          return std::move(self).Continue(std::move(waiting), same, to);
        });
    if (!Answers::kWaitsLong) step.patience_ms = 0;
    step.is_next = is_next;
    return step;
  }

  ServeStep Continue(WaitingIds waiting, DoorCall& door, OutBuffer& out) && {
    if (!answers_.MayAsk(left_, door, out)) return Served();
    return std::move(*this).Go(desk_->Continue(std::move(waiting), door), false, door, out);
  }

  ServeStep Served() const { return ServeStep::Served(0, static_cast<size_t>(calls_)); }

  IdDesk* desk_;
  const Tag* tag_;
  int64_t calls_, left_;
  std::chrono::milliseconds patience_;
  Answers answers_;
};

}  // namespace firn::front
