// What a Fleet makes of answers and failures.

#include <algorithm>
#include <utility>

#include "client/fleet/fleet.h"
#include "common/base/cat.h"

namespace firn::client {
namespace {

using Kind = ClientEvent::Kind;

constexpr size_t kTagsRememberedMax = 1000;

std::string SecondsText(Micros time) {
  return std::to_string(time.count() / 1'000'000) + "." +
         std::to_string(time.count() / 100'000 % 10) + " s";
}

// The refusals after which it makes no difference which server is asked.
bool IsFinal(const std::optional<Reason>& reason) {
  return reason == Reason::kBadRequest || reason == Reason::kUnknownTag ||
         reason == Reason::kRejected || reason == Reason::kExhausted;
}

void Remember(Server::TagTimes& times, std::string_view tag, Micros until) {
  if (times.size() >= kTagsRememberedMax) times.clear();
  times[std::string(tag)] = until;
}

}  // namespace

void Fleet::Done(Server& server, std::string_view tag, const Outcome& outcome, Micros took,
                 Micros now) {
  GiveBack(server);
  if (!outcome.unsent()) attempts_.fetch_add(1, std::memory_order_relaxed);
  if (outcome.blameless()) return;
  (outcome.spoke() ? server.answered : server.failed).fetch_add(1, std::memory_order_relaxed);
  if (outcome.answered()) server.last_answer.store(now, std::memory_order_relaxed);
  const bool helped = outcome.answered() || IsFinal(outcome.refusal);
  // Whatever sends a call elsewhere counts as slow, however soon it came.
  server.latency.Observe(helped ? took : std::max(took, attempt_limit_), now);
  // An answer as all the others: nothing to learn from it.
  if (outcome.answered() && server.well.load(std::memory_order_relaxed)) return;
  Events told;
  {
    const std::lock_guard lock(mutex_);
    Heed(server, tag, outcome, now, told);
    server.well.store(server.health.spotless(), std::memory_order_relaxed);
  }
  Tell(told);
}

void Fleet::Heed(Server& server, std::string_view tag, const Outcome& outcome, Micros now,
                 Events& told) {
  if (outcome.unsent()) server.reached = false;
  switch (outcome.end) {
    case AttemptEnd::kAnswered:
      return Revive(server, told);
    case AttemptEnd::kRefused:
      ++counters_.refused;
      return HeedRefusal(server, tag, outcome, now, told);
    case AttemptEnd::kUnreachable:
      return Failed(server, 1, outcome, now, told);
    case AttemptEnd::kConnectTimeout:
      ++counters_.timeouts;
      return Failed(server, outcome.shared_blame ? 0 : 2, outcome, now, told);
    case AttemptEnd::kTimeout:
      ++counters_.timeouts;
      return Failed(server, outcome.shared_blame ? 0 : 1, outcome, now, told);
    case AttemptEnd::kClosed:
      return Failed(server, outcome.stale() || outcome.shared_blame ? 0 : 1, outcome, now, told);
    case AttemptEnd::kBroken:
    case AttemptEnd::kWrongService:
      ++counters_.broken;
      return Quarantine(server, outcome, now, told);
    case AttemptEnd::kAbandoned:
    case AttemptEnd::kNoRoom:
      return;
  }
}

void Fleet::HeedRefusal(Server& server, std::string_view tag, const Outcome& outcome, Micros now,
                        Events& told) {
  const Micros advice = outcome.retry_after.count() > 0 ? Micros(outcome.retry_after) : kNoAdvice;
  const Reason reason = outcome.refusal.value_or(Reason::kInternal);
  server.why = Cat(ReasonName(reason), ": ", outcome.detail);
  switch (reason) {
    case Reason::kNotReady:
    case Reason::kClock:
      server.not_ready_until = now + advice;
      return;
    case Reason::kStoreDown:
      return Remember(server.store_down_until, tag, now + advice);
    case Reason::kDraining:
      return Drain(server, tag, now, told);
    case Reason::kInternal:
      return Failed(server, 1, outcome, now, told);
    case Reason::kOverloaded:
      return;  // it is well, and busy
    case Reason::kBadRequest:
    case Reason::kUnknownTag:
    case Reason::kExhausted:
    case Reason::kRejected:
      return Revive(server, told);
  }
}

bool Fleet::MayRest() const {
  size_t enabled = 0, resting = 0;
  for (const auto& [address, server] : servers_) {
    if (server->known.disabled) continue;
    ++enabled;
    resting += server->health.resting() ? 1U : 0U;
  }
  return (resting + 1) * 2 <= enabled;
}

void Fleet::Failed(Server& server, int times, const Outcome& outcome, Micros now, Events& told) {
  server.health.Failed(times);
  if (server.health.resting() || !server.health.ill() || !MayRest()) return;
  server.why = std::string(AttemptEndName(outcome.end)) +
               (outcome.detail.empty() ? "" : ": " + outcome.detail);
  const Micros rest = server.health.Rest(now, entropy_);
  told.push_back(
      {Kind::kServerOut, server.name, "rests for " + SecondsText(rest) + "; " + server.why});
}

void Fleet::Quarantine(Server& server, const Outcome& outcome, Micros now, Events& told) {
  server.why = outcome.detail;
  server.recheck_at = now + kRecheck;
  server.may_forgive = false;
  if (server.quarantined) return;
  server.quarantined = true;
  told.push_back({Kind::kQuarantined, server.name, outcome.detail});
}

void Fleet::Drain(Server& server, std::string_view tag, Micros now, Events& told) {
  Remember(server.closed_until, tag, now + kRecheck);
  server.recheck_at = now + kRecheck;
  if (server.draining) return;
  server.draining = server.drain_doubted = true;
  told.push_back({Kind::kDraining, server.name, server.why});
}

void Fleet::Revive(Server& server, Events& told) {
  const bool rested = server.health.resting();
  server.health.Succeeded();
  if (rested) told.push_back({Kind::kServerBack, server.name, "answers again"});
}

// --- looking at servers that are out ------------------------------------------------------------

std::vector<ServerPtr> Fleet::TakeProbes(Micros now) {
  const std::lock_guard lock(mutex_);
  std::vector<ServerPtr> probes;
  for (const auto& [address, server] : servers_) {
    if (server->addresses.empty()) continue;
    const bool recheck =
        fixed_ && (server->quarantined || server->draining) && now >= server->recheck_at;
    if (recheck) server->recheck_at = now + kRecheck;
    server->may_forgive |= recheck && server->quarantined;
    const bool doubted = std::exchange(server->drain_doubted, false);
    if (recheck || doubted || server->health.TakeProbe(now)) probes.push_back(server);
  }
  return probes;
}

void Fleet::Probed(Server& server, const Outcome& outcome, const ServerFacts& facts, Micros now) {
  Events told;
  {
    const std::lock_guard lock(mutex_);
    if (outcome.answered()) {
      if (std::exchange(server.may_forgive, false)) server.quarantined = false;
      if (server.draining && !facts.draining) {
        told.push_back({Kind::kServerBack, server.name, "is not on its way out"});
      }
      server.draining = facts.draining;
      server.latency.Forget();
      Revive(server, told);
    } else if (outcome.end == AttemptEnd::kBroken || outcome.end == AttemptEnd::kWrongService) {
      Quarantine(server, outcome, now, told);
    }
    if (server.health.resting()) server.health.Rest(now, entropy_);
    server.well.store(server.health.spotless(), std::memory_order_relaxed);
  }
  Tell(told);
  if (outcome.answered()) TellNews();
}

Outcome Fleet::Admit(const ServerFacts& facts) {
  const std::lock_guard lock(mutex_);
  if (check_.KnowsTooLittle(facts)) {
    Outcome unready = Outcome::Of(AttemptEnd::kRefused, "it does not know its cluster yet");
    unready.refusal = Reason::kNotReady;
    return unready;
  }
  if (auto fault = check_.FaultOf(facts)) {
    return Outcome::Of(AttemptEnd::kWrongService, *std::move(fault));
  }
  if (own_numbers_.size() < kTagsRememberedMax) {
    own_numbers_.insert(facts.own_numbers.begin(), facts.own_numbers.end());
  }
  return {};
}

}  // namespace firn::client
