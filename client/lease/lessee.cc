#include "client/lease/lessee.h"

#include <algorithm>
#include <utility>

#include "common/base/call_hook.h"
#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/time/civil_time.h"

namespace firn {
namespace {

// Returns whether `terms` are the terms of the held lease with the same or a later end.
bool Extends(const LeaseGrant& terms, const LeaseGrant& held) {
  return terms.lease == held.lease && terms.layout == held.layout &&
         terms.machine == held.machine && terms.base_bits == held.base_bits &&
         terms.until >= held.until;
}

// Returns the end of the interval, if its layout has that tick.
std::optional<WallMs> EndOf(const LeaseGrant& terms) {
  if (terms.until <= Tick(0) || terms.until > terms.layout.last_tick() + 1) return std::nullopt;
  return terms.layout.StartOf(terms.until);
}

}  // namespace

Lessee::Lessee(LeaseOptions options, LeasedIds& ids, Entropy& entropy,
               std::shared_ptr<LeaseTransport> transport, std::shared_ptr<LeaseOutcomes> replies)
    : options_(std::move(options)),
      ids_(ids),
      entropy_(entropy),
      transport_(std::move(transport)),
      replies_(std::move(replies)),
      interval_(options_.ahead) {}

void Lessee::Tick(Now now) {
  if (ids_.InChild()) return;
  const WallMs time = ids_.Advance();
  next_tick_ = now.boot + kTickMax;
  Hurry(now);
  if (held_) {
    if (time >= held_->end && !held_->expired) {
      held_->expired = true;
      Lose(LeaseLoss::Kind::kExpired,
           Cat("the lease ended at ", FormatRfc3339(held_->end), ", and no server extended it"));
    }
    const bool renewable = held_->renewable && !renewal_;
    if (renewable && now.boot >= held_->renew_at) {
      AskForMore(now);
    } else if (renewable) {
      next_tick_ = std::min(next_tick_, held_->renew_at);
    }
    if (time < held_->end) next_tick_ = std::min(next_tick_, now.boot + (held_->end - time));
  }
  const bool wants_lease = !stopping_ && (!held_ || time >= held_->replace_at);
  if (wants_lease && !grant_ && now.boot >= grant_not_before_) AskForGrant(now);

  if (renewal_) SendIfDue(*renewal_, now);
  if (grant_) SendIfDue(*grant_, now);
  std::erase_if(releases_, [time](const Request& release) { return release.useless_at <= time; });
  for (Request& release : releases_) SendIfDue(release, now);
}

void Lessee::Hurry(Now now) {
  const bool jumped = ids_.jumped();
  if (held_ && jumped) held_->renew_at = std::min(held_->renew_at, held_->answered_at + kRenewMin);
  for (std::optional<Request>* request : {&renewal_, &grant_}) {
    if (!*request) continue;
    Request& one = **request;
    one.sent_in_jump = one.sent_in_jump && jumped;
    if (jumped && !one.sent_in_jump && !one.under_way) {
      one.send_at = std::min(one.send_at, now.boot);
    }
  }
}

void Lessee::SendIfDue(Request& request, Now now) {
  if (now.boot >= request.send_at) {
    if (!request.under_way) request.sent_in_jump = ids_.jumped();
    request.under_way = true;
    LeaseRequest ask = request.ask;
    ask.clock = now.wall;
    const Milliseconds distance(now.wall.ms() - now.boot.ms());
    request.wall_from_boot = std::min(request.wall_from_boot.value_or(distance), distance);
    request.send_at = now.boot + options_.attempt;
    transport_->Send(request.number, ask, replies_);
  }
  next_tick_ = std::min(next_tick_, request.send_at);
}

Lessee::Request Lessee::Make(LeaseRequest ask, Now now) {
  const Milliseconds cap = std::clamp(options_.retry_max, kRetryMin, kRetryMax);
  const Milliseconds first = std::clamp(options_.retry_first, kRetryMin, cap);
  return {
      .number = ++numbers_,
      .ask = std::move(ask),
      .send_at = now.boot,
      .backoff = std::make_unique<Backoff>(Backoff::Options{.first = first, .cap = cap}, entropy_)};
}

Milliseconds Lessee::LongestWait() const {
  const Milliseconds part = std::max(interval_ / kRetryPart, kRetryMaxLeast);
  return std::clamp(std::min(options_.retry_max, part), kRetryMin, kRetryMax);
}

std::string Lessee::Draw() { return ToHex(entropy_.Next()) + ToHex(entropy_.Next()); }

void Lessee::AskForGrant(Now now) {
  grant_ = Make({.kind = LeaseRequest::Kind::kGrant,
                 .token = Draw(),
                 .name = options_.name,
                 .rack = options_.rack,
                 .avoid = last_server_,
                 .ahead = options_.ahead},
                now);
}

void Lessee::AskForMore(Now now) {
  held_->turn = Draw();
  renewal_ = Make({.kind = LeaseRequest::Kind::kRenew,
                   .ahead = options_.ahead,
                   .lease = held_->terms.lease,
                   .server = held_->terms.server,
                   .turn = held_->turn,
                   .acknowledged = held_->acknowledged,
                   .until = held_->terms.until},
                  now);
}

void Lessee::OnReply(uint64_t number, const LeaseOutcome& reply, Now now) {
  if (ids_.InChild()) return;
  if (grant_ && grant_->number == number) {
    OnGrant(reply, now);
  } else if (renewal_ && renewal_->number == number) {
    OnRenewal(reply, now);
  } else {
    const auto release = std::find_if(releases_.begin(), releases_.end(),
                                      [number](const Request& r) { return r.number == number; });
    if (release == releases_.end()) return;
    const bool again =
        reply.kind == LeaseOutcome::Kind::kNoAnswer || reply.kind == LeaseOutcome::Kind::kRefused;
    if (again && !reply.for_good) return Retry(*release, reply, now);
    if (again) Report(reply);
    releases_.erase(release);
  }
}

void Lessee::OnGrant(const LeaseOutcome& reply, Now now) {
  switch (reply.kind) {
    case LeaseOutcome::Kind::kTerms: {
      const bool is_held = held_ && held_->terms.lease == reply.terms.lease;
      const Status adopted = is_held ? Invalid("a server granted the lease that is held already")
                                     : ids_.Adopt(reply.terms);
      if (adopted.ok()) {
        ConfirmClock(*grant_, now);
        return Hold(reply.terms, now);
      }
      return Reject(reply.terms, EndOf(reply.terms), adopted, now);
    }
    case LeaseOutcome::Kind::kUnusable:
      Reject(reply.terms, reply.end, reply.status, now);
      return;
    case LeaseOutcome::Kind::kGone:
    case LeaseOutcome::Kind::kOutdated:  // a copy of this process has extended this token's lease
    case LeaseOutcome::Kind::kUnknown:
    case LeaseOutcome::Kind::kReleased:
      grant_->ask.token = Draw();
      Retry(*grant_, reply, now);
      return;
    case LeaseOutcome::Kind::kNotExtended:
    case LeaseOutcome::Kind::kRefused:
    case LeaseOutcome::Kind::kNoAnswer:
    case LeaseOutcome::Kind::kElsewhere:
      Retry(*grant_, reply, now);
      return;
  }
}

// Releases the lease, so that its machine id does not stay unused until the lease expires. An end
// that has passed, or is more than `ahead` away, is wrong and is ignored.
void Lessee::Reject(const LeaseGrant& terms, std::optional<WallMs> end, const Status& why,
                    Now now) {
  const bool is_held = held_ && held_->terms.lease == terms.lease;
  if (!terms.lease.empty() && !is_held) {
    const WallMs time = ids_.Advance(), latest = time + options_.ahead;
    const WallMs useless_at = end && *end > time ? std::min(*end, latest) : latest;
    AddRelease({.kind = LeaseRequest::Kind::kRelease,
                .lease = terms.lease,
                .server = terms.server,
                .used = std::max(terms.from, firn::Tick(0)) - 1},
               useless_at, now);
  }
  grant_->ask.token = Draw();  // the old token would get the same lease
  Retry(*grant_, {.kind = LeaseOutcome::Kind::kNoAnswer, .status = why}, now);
}

// LeasedIds::Adopt has closed the ids of the previous lease.
void Lessee::Hold(const LeaseGrant& terms, Now now) {
  if (held_) Release(now);
  renewal_.reset();
  grant_.reset();
  held_ = Held{.terms = terms};
  last_server_ = terms.server;
  grant_not_before_ = now.boot + kGrantPause;
  Schedule(terms, now);
}

// Uses the boot clock to compute the time. It may lack the time for which a virtual machine was
// paused, so the result can be too early, but not too late.
void Lessee::ConfirmClock(const Request& request, Now now) {
  if (request.wall_from_boot) {
    ids_.RaiseClockTo(WallMs(now.boot.ms()) + *request.wall_from_boot);
  }
}

void Lessee::Schedule(const LeaseGrant& terms, Now now) {
  held_->terms.until = terms.until;
  held_->end = terms.layout.StartOf(terms.until);
  const WallMs time = ids_.Advance();
  const Milliseconds left = std::max(held_->end - time, Milliseconds(0)), third = left / 3;
  if (left > Milliseconds(0)) interval_ = std::min(left, options_.ahead);
  // The end of an ending lease eventually stops moving, so its remaining time shrinks. Keep the
  // earlier, larger third.
  if (!terms.ending || third > held_->third) held_->third = third;
  held_->replace_at = held_->end - held_->third;
  held_->answered_at = now.boot;
  held_->renew_at = now.boot + std::max(std::min(terms.renew_in, third), kRenewMin);
  held_->expired = time >= held_->end && held_->expired;
  next_tick_ = now.boot;
}

void Lessee::OnRenewal(const LeaseOutcome& reply, Now now) {
  switch (reply.kind) {
    case LeaseOutcome::Kind::kTerms: {
      const LeaseGrant& terms = reply.terms;
      if (!CheckTerms(terms).ok() || !Extends(terms, held_->terms)) {
        Retry(*renewal_,
              {.kind = LeaseOutcome::Kind::kNoAnswer,
               .status = Invalid("a renewal was answered with the terms of another lease")},
              now);
        return;
      }
      ids_.ExtendTo(terms.until);
      ConfirmClock(*renewal_, now);
      held_->terms.server = last_server_ = terms.server;
      held_->acknowledged = renewal_->ask.turn;
      Schedule(terms, now);
      renewal_.reset();
      return;
    }
    case LeaseOutcome::Kind::kGone:
    case LeaseOutcome::Kind::kOutdated: {
      std::string why = reply.status.message();
      if (why.empty()) why = "the server has ended it, because another process may have its ids";
      ids_.Close(Unavailable(Cat("the lease of machine id ", held_->terms.machine.value(),
                                 " was lost at ", FormatRfc3339(now.wall), ": ", why)));
      Lose(LeaseLoss::Kind::kGone, why);
      held_.reset();
      renewal_.reset();
      next_tick_ = now.boot;
      return;
    }
    case LeaseOutcome::Kind::kUnknown:
    case LeaseOutcome::Kind::kReleased:
      held_->known = false;
      Abandon(reply, now);
      return;
    case LeaseOutcome::Kind::kNotExtended:
      held_->turn = held_->acknowledged;  // the server has not accepted the turn of this renewal
      Abandon(reply, now);
      return;
    case LeaseOutcome::Kind::kUnusable:
    case LeaseOutcome::Kind::kRefused:
    case LeaseOutcome::Kind::kNoAnswer:
    case LeaseOutcome::Kind::kElsewhere:
      Retry(*renewal_, reply, now);
      return;
  }
}

void Lessee::Abandon(const LeaseOutcome& reply, Now now) {
  Report(reply);
  held_->renewable = false;
  held_->replace_at = ids_.Advance();
  renewal_.reset();
  next_tick_ = now.boot;
}

void Lessee::Report(const LeaseOutcome& reply) {
  if (!reply.status.ok()) CallHook(options_.on_failure, reply.status);
}

void Lessee::Retry(Request& request, const LeaseOutcome& reply, Now now) {
  Report(reply);
  request.under_way = false;
  request.send_at = now.boot + std::max(request.backoff->Next(LongestWait()), Advised(reply));
  next_tick_ = std::min(next_tick_, request.send_at);
}

// Limits the advice, so that a wrong one does not delay the next attempt beyond the interval's end.
Milliseconds Lessee::Advised(const LeaseOutcome& reply) {
  const Milliseconds advice = std::min(reply.retry_in.value_or(Milliseconds(0)), kAdviceMax);
  const Milliseconds left = held_ ? held_->end - ids_.Advance() : Milliseconds(0);
  return left > Milliseconds(0) ? std::min(advice, left / 2) : advice;
}

void Lessee::Release(Now now) {
  if (!held_->known) return;
  AddRelease({.kind = LeaseRequest::Kind::kRelease,
              .lease = held_->terms.lease,
              .server = held_->terms.server,
              .turn = held_->turn,
              .acknowledged = held_->acknowledged,
              .until = held_->terms.until,
              .used = std::min(ids_.last_used(), held_->terms.until - 1)},
             held_->end, now);
}

void Lessee::AddRelease(LeaseRequest ask, WallMs useless_at, Now now) {
  if (releases_.size() == kReleasesMax) releases_.erase(releases_.begin());
  releases_.push_back(Make(std::move(ask), now));
  releases_.back().useless_at = useless_at;
  next_tick_ = now.boot;
}

void Lessee::Lose(LeaseLoss::Kind kind, const std::string& why) {
  CallHook(options_.on_lost, LeaseLoss{kind, held_->terms.machine, why});
}

void Lessee::Stop(Now now) {
  if (stopping_ || ids_.InChild()) return;
  stopping_ = true;
  ids_.Close(Unavailable("the generator is stopped"));
  if (held_) Release(now);
  held_.reset();
  grant_.reset();
  renewal_.reset();
}

}  // namespace firn
