#include "client/lease/lessee.h"

#include <algorithm>
#include <utility>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/time/civil_time.h"

namespace firn {

Lessee::Lessee(LeaseOptions options, LeasedIds& ids, Entropy& entropy,
               std::shared_ptr<LeaseTransport> transport, std::shared_ptr<LeaseOutcomes> replies)
    : options_(std::move(options)),
      ids_(ids),
      entropy_(entropy),
      transport_(std::move(transport)),
      replies_(std::move(replies)) {}

void Lessee::Tick(Now now) {
  if (ids_.InChild()) return;
  const WallMs time = ids_.Advance();
  next_tick_ = now.boot + kTickMax;
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

  if (grant_) SendIfDue(*grant_, now);
  if (renewal_) SendIfDue(*renewal_, now);
  std::erase_if(releases_, [time](const Request& release) { return release.useless_at <= time; });
  for (Request& release : releases_) SendIfDue(release, now);
}

void Lessee::SendIfDue(Request& request, Now now) {
  if (now.boot >= request.send_at) {
    LeaseRequest ask = request.ask;
    ask.clock = now.wall;
    request.send_at = now.boot + options_.attempt;
    transport_->Send(request.number, ask, replies_);
  }
  next_tick_ = std::min(next_tick_, request.send_at);
}

Lessee::Request Lessee::Make(LeaseRequest ask, Now now) {
  return {
      .number = ++numbers_,
      .ask = std::move(ask),
      .send_at = now.boot,
      .backoff = std::make_unique<Backoff>(
          Backoff::Options{.first = options_.retry_first, .cap = options_.retry_max}, entropy_)};
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
  renewal_ = Make({.kind = LeaseRequest::Kind::kRenew,
                   .ahead = options_.ahead,
                   .lease = held_->terms.lease,
                   .server = held_->terms.server,
                   .turn = Draw(),
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
    if (reply.kind == LeaseOutcome::Kind::kNoAnswer || reply.kind == LeaseOutcome::Kind::kRefused) {
      Retry(*release, reply, now);
    } else {
      releases_.erase(release);
    }
  }
}

void Lessee::OnGrant(const LeaseOutcome& reply, Now now) {
  switch (reply.kind) {
    case LeaseOutcome::Kind::kTerms: {
      const Status adopted = ids_.Adopt(reply.terms);
      if (adopted.ok()) {
        Hold(reply.terms, now);
        return;
      }
      if (options_.on_failure) options_.on_failure(adopted);
      grant_->ask.token = Draw();  // this token would get the same lease
      Retry(*grant_, {.kind = LeaseOutcome::Kind::kNoAnswer}, now);
      return;
    }
    case LeaseOutcome::Kind::kGone:
    case LeaseOutcome::Kind::kOutdated:  // this token's lease was extended, by a copy
    case LeaseOutcome::Kind::kUnknown:
    case LeaseOutcome::Kind::kReleased:
      grant_->ask.token = Draw();
      Retry(*grant_, reply, now);
      return;
    case LeaseOutcome::Kind::kRefused:
    case LeaseOutcome::Kind::kNoAnswer:
      Retry(*grant_, reply, now);
      return;
  }
}

// Adopting the terms has closed the ids of the lease before.
void Lessee::Hold(const LeaseGrant& terms, Now now) {
  if (held_) Release(now);
  renewal_.reset();
  grant_.reset();
  held_ = Held{.terms = terms};
  last_server_ = terms.server;
  grant_not_before_ = now.boot + kGrantPause;
  Schedule(terms, now);
}

void Lessee::Schedule(const LeaseGrant& terms, Now now) {
  held_->terms.until = terms.until;
  held_->end = terms.layout.StartOf(terms.until);
  const WallMs time = ids_.Advance();
  const Milliseconds third = std::max(held_->end - time, Milliseconds(0)) / 3;
  held_->replace_at = held_->end - third;
  held_->renew_at = now.boot + std::max(std::min(terms.renew_in, third), kRenewMin);
  held_->renewable = !terms.ending;
  held_->expired = time >= held_->end && held_->expired;
  next_tick_ = now.boot;
}

void Lessee::OnRenewal(const LeaseOutcome& reply, Now now) {
  switch (reply.kind) {
    case LeaseOutcome::Kind::kTerms: {
      const LeaseGrant& terms = reply.terms;
      if (terms.lease != held_->terms.lease || terms.machine != held_->terms.machine ||
          terms.until < held_->terms.until || !CheckTerms(terms).ok()) {
        Retry(*renewal_,
              {.kind = LeaseOutcome::Kind::kRefused,
               .status = Invalid("a renewal was answered with the terms of another lease")},
              now);
        return;
      }
      ids_.ExtendTo(terms.until);
      held_->terms.server = terms.server;
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
      held_->renewable = false;
      held_->replace_at = ids_.Advance();
      renewal_.reset();
      next_tick_ = now.boot;
      return;
    case LeaseOutcome::Kind::kRefused:
    case LeaseOutcome::Kind::kNoAnswer:
      Retry(*renewal_, reply, now);
      return;
  }
}

void Lessee::Retry(Request& request, const LeaseOutcome& reply, Now now) {
  if (!reply.status.ok() && options_.on_failure) options_.on_failure(reply.status);
  request.send_at =
      now.boot + std::max(request.backoff->Next(), reply.retry_in.value_or(Milliseconds(0)));
  next_tick_ = std::min(next_tick_, request.send_at);
}

void Lessee::Release(Now now) {
  if (releases_.size() == kReleasesMax) releases_.erase(releases_.begin());
  releases_.push_back(Make({.kind = LeaseRequest::Kind::kRelease,
                            .lease = held_->terms.lease,
                            .server = held_->terms.server,
                            .turn = renewal_ ? renewal_->ask.turn : held_->acknowledged,
                            .acknowledged = held_->acknowledged,
                            .until = held_->terms.until,
                            .used = std::min(ids_.last_used(), held_->terms.until - 1)},
                           now));
  releases_.back().useless_at = held_->end;
  next_tick_ = now.boot;
}

void Lessee::Lose(LeaseLoss::Kind kind, const std::string& why) {
  if (options_.on_lost) options_.on_lost({kind, held_->terms.machine, why});
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
