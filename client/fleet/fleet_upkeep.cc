// How a Fleet learns from answers and failures.

#include <algorithm>
#include <utility>

#include "client/fleet/fleet.h"
#include "client/fleet/refusals.h"
#include "common/base/cat.h"

namespace firn::client {
namespace {

using Kind = ClientEvent::Kind;
using Event = Membership::Event;

constexpr size_t kOwnNumbersMax = 1000;

// Returns how many failures of the server an outcome without an answer counts as.
int FailuresOf(const Outcome& outcome) {
  if (outcome.shared_blame || outcome.stale()) return 0;
  if (outcome.end == AttemptEnd::kConnectTimeout) return 2;
  return std::min(outcome.lost, Health::kInARow);
}

std::string SecondsText(Micros time) {
  return Cat(time.count() / 1'000'000, ".", time.count() / 100'000 % 10, " s");
}

}  // namespace

void Fleet::Done(Server& server, std::string_view tag, const Outcome& outcome, Micros took,
                 Micros now) {
  GiveBack(server);
  if (!outcome.unsent()) attempts_.fetch_add(1, std::memory_order_relaxed);
  if (outcome.blameless()) return;
  (outcome.spoke() ? server.answered : server.failed).fetch_add(1, std::memory_order_relaxed);
  if (outcome.answered()) server.last_answer.store(now, std::memory_order_relaxed);
  server.latency.Observe(IsAnswer(outcome) ? took : std::max(took, attempt_limit_), now);
  if (outcome.gave_ids()) server.limits.Reopen(tag, now);
  // A normal answer of a healthy server changes nothing.
  if (outcome.answered() && server.well.load(std::memory_order_relaxed)) return;
  Change(server, [&] { Heed(server, tag, outcome, now); });
}

void Fleet::Heed(Server& server, std::string_view tag, const Outcome& outcome, Micros now) {
  if (outcome.unsent() && !outcome.shared_blame) server.reached = false;
  switch (outcome.end) {
    case AttemptEnd::kAnswered:
      return Revive(server,
                    outcome.gave_ids() && server.membership.Hear(Event::kGivesIds, now, entropy_));
    case AttemptEnd::kRefused:
      ++counters_.refused;
      return HeedRefusal(server, tag, outcome, now);
    case AttemptEnd::kConnectTimeout:
    case AttemptEnd::kTimeout:
      ++counters_.timeouts;
      return Failed(server, FailuresOf(outcome), outcome, now);
    case AttemptEnd::kUnreachable:
    case AttemptEnd::kClosed:
      return Failed(server, FailuresOf(outcome), outcome, now);
    case AttemptEnd::kBroken:
    case AttemptEnd::kWrongService:
      ++counters_.broken;
      if (outcome.lacks_method) return;  // its other methods still work
      return Quarantine(server, outcome, now);
    case AttemptEnd::kAbandoned:
      return;
  }
}

Micros Fleet::Spread(Micros most) {
  const std::lock_guard lock(mutex_);
  return RandomUpTo(most, entropy_);
}

void Fleet::HeedRefusal(Server& server, std::string_view tag, const Outcome& outcome, Micros now) {
  const Micros advice = outcome.retry_after.count() > 0 ? Micros(outcome.retry_after) : kNoAdvice;
  const Reason reason = outcome.refusal.value_or(Reason::kInternal);
  server.why = Cat(ReasonName(reason), ": ", outcome.detail);
  switch (reason) {
    case Reason::kNotReady:
    case Reason::kClock:
      return server.limits.NotReady(now + AtLeast(advice));
    case Reason::kStoreDown:
      return server.limits.StoreDown(tag, now + AtLeast(advice));
    case Reason::kDraining:
      return Drain(server, tag, now);
    case Reason::kInternal:
      return Failed(server, 1, outcome, now);
    case Reason::kOverloaded:
      return;  // it is healthy and busy
    case Reason::kBadRequest:
    case Reason::kUnknownTag:
    case Reason::kExhausted:
    case Reason::kRejected:
      return Revive(server, false);
  }
}

bool Fleet::MayLeave(const Server& server) const {
  const size_t members = CountIf([](const Server& one) { return one.counts(); });
  const size_t others_out = CountIf([&](const Server& one) {
    const bool out = one.health.ejected() || one.membership.quarantined();
    return out && one.counts() && &one != &server;
  });
  return (others_out + 1) * 2 <= members;
}

void Fleet::Failed(Server& server, int times, const Outcome& outcome, Micros now) {
  Health& health = server.health;
  health.Failed(times);
  if (health.out() || !health.TooManyFailures()) return;
  const std::string_view colon = outcome.detail.empty() ? "" : ": ";
  server.why = Cat(AttemptEndName(outcome.end), colon, outcome.detail);
  const std::string time = SecondsText(TakeOut(server, now));
  const std::string_view what = health.ejected() ? "ejected for " : "called last for ";
  TellLater(Kind::kUnhealthy, server, Cat(what, time, "; ", server.why));
}

Micros Fleet::TakeOut(Server& server, Micros now) {
  const bool eject = MayLeave(server);
  counters_.ejections += eject ? 1U : 0U;
  return server.health.TakeOut(eject, now, entropy_);
}

void Fleet::Quarantine(Server& server, const Outcome& outcome, Micros now) {
  const bool foreign = outcome.end == AttemptEnd::kWrongService;
  if (!foreign && !MayLeave(server)) {
    return Failed(server, Health::kInARow, outcome, now);
  }
  server.why = outcome.detail;
  const Event event = foreign ? Event::kIsForeign : Event::kBreaksProtocol;
  if (!server.membership.Hear(event, now, entropy_)) return;
  ++counters_.quarantines;
  TellLater(Kind::kQuarantined, server, outcome.detail);
}

void Fleet::Drain(Server& server, std::string_view tag, Micros now) {
  server.limits.Closed(tag, now + AtLeast(Membership::kRecheck));
  if (!server.membership.Hear(Event::kSaysDraining, now, entropy_)) return;
  TellLater(Kind::kDraining, server, server.why);
}

void Fleet::Revive(Server& server, bool drained) {
  const bool back = drained || server.health.out();
  server.health.Succeeded();
  if (back) TellLater(Kind::kHealthy, server, "answers again");
}

// --- probes of unhealthy servers -----------------------------------------------------------------

std::vector<ServerPtr> Fleet::TakeProbes(Micros now) {
  const std::lock_guard lock(mutex_);
  std::vector<ServerPtr> probes;
  for (const auto& [address, server] : servers_) {
    if (server->addresses.empty()) continue;
    if (server->TakeProbe(now)) probes.push_back(server);
  }
  counters_.probes += probes.size();
  return probes;
}

void Fleet::Probed(Server& server, const Outcome& outcome, const ServerFacts& facts, Micros now) {
  Change(server, [&] {
    if (outcome.answered()) {
      Seen(server, facts, now);
    } else {
      NotSeen(server, outcome, now);
    }
  });
  if (outcome.answered()) TellNews();
}

void Fleet::Connected(Server& server) {
  Change(server, [&] {
    if (!server.health.out()) server.health.Succeeded();
  });
}

void Fleet::Seen(Server& server, const ServerFacts& facts, Micros now) {
  const bool was_out = server.health.out();
  const bool left = !server.membership.member();
  server.membership.Hear(facts.draining ? Event::kSeenDraining : Event::kSeenStaying, now,
                         entropy_);
  server.health.Seen();
  server.latency.Forget();
  if (left && server.membership.member()) {
    TellLater(Kind::kHealthy, server, "its status is good");
  } else if (was_out) {
    TellLater(Kind::kHealthy, server, "answers again");
  }
}

void Fleet::NotSeen(Server& server, const Outcome& outcome, Micros now) {
  ++counters_.probes_lost;
  if (outcome.end == AttemptEnd::kBroken || outcome.end == AttemptEnd::kWrongService) {
    Quarantine(server, outcome, now);
  }
  server.membership.Hear(Event::kNotSeen, now, entropy_);
  if (server.health.out()) TakeOut(server, now);
}

void Fleet::LearnOwnNumbers(const ServerFacts& facts) {
  const auto known = [this](const std::string& tag) { return own_numbers_->contains(tag); };
  if (own_numbers_->size() >= kOwnNumbersMax || std::ranges::all_of(facts.own_numbers, known)) {
    return;
  }
  auto more = std::make_shared<TagSet>(*own_numbers_);
  more->insert(facts.own_numbers.begin(), facts.own_numbers.end());
  own_numbers_ = std::move(more);
  NewRoster();
}

Outcome Fleet::Admit(Outcome asked, const ServerFacts& facts) {
  if (asked.spoke() ? !asked.answered() : asked.end == AttemptEnd::kBroken) {
    return Outcome::Of(AttemptEnd::kWrongService, asked.detail);
  }
  if (!asked.answered()) return asked;
  const std::lock_guard lock(mutex_);
  if (check_.KnowsTooLittle(facts)) {
    Outcome unready = Outcome::Of(AttemptEnd::kRefused, "it does not know its cluster yet");
    unready.refusal = Reason::kNotReady;
    return unready;
  }
  if (auto fault = check_.FaultOf(facts)) {
    return Outcome::Of(AttemptEnd::kWrongService, *fault);
  }
  LearnOwnNumbers(facts);
  return {};
}

}  // namespace firn::client
