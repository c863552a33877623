#include "client/fleet/membership.h"

#include <utility>

namespace firn::client {

Membership::Probe* Membership::ProbeOf(State& state) {
  if (auto* draining = std::get_if<Draining>(&state)) return &draining->probe;
  if (auto* quarantined = std::get_if<Quarantined>(&state)) return &quarantined->probe;
  if (auto* foreign = std::get_if<Foreign>(&state)) return &foreign->probe;
  return nullptr;
}

Membership::State Membership::After(const State& from, Event event, Micros probe_at) {
  State to = from;
  Probe* const probe = ProbeOf(to);
  const bool shut =
      !std::holds_alternative<Member>(from) && !std::holds_alternative<Draining>(from);
  const bool held = shut && !probe->under_way;
  switch (event) {
    case Event::kListed:
      return Member{};
    case Event::kGivesIds:
      return shut ? from : Member{};
    case Event::kIsForeign:
      return Foreign{{.at = probe_at}};
    case Event::kBreaksProtocol:
      if (std::holds_alternative<Foreign>(from)) return Foreign{{.at = probe_at}};
      return Quarantined{{.at = probe_at}};
    case Event::kSaysDraining:
      if (probe == nullptr) return Draining{{.at = probe_at}};
      return from;
    case Event::kSeenStaying:
      return held ? from : Member{};
    case Event::kSeenDraining:
      return held ? from : Draining{{.at = probe_at}};
    case Event::kNotSeen:
      if (probe != nullptr && probe->under_way) *probe = {.at = probe_at};
      return to;
  }
  return from;
}

Micros Membership::NextProbe(Event event, Micros now, Entropy& entropy) {
  switch (event) {
    case Event::kSaysDraining:
      return now;
    case Event::kBreaksProtocol:
      return now + quarantine_.Next(now, entropy);
    case Event::kIsForeign:
    case Event::kNotSeen:
      return now + (quarantined() ? quarantine_ : unseen_).Next(now, entropy);
    case Event::kListed:
    case Event::kGivesIds:
    case Event::kSeenStaying:
    case Event::kSeenDraining:
      break;
  }
  return now + kRecheck;
}

bool Membership::Hear(Event event, Micros now, Entropy& entropy) {
  const Probe* const probe = ProbeOf(state_);
  // The same event from another connection neither restarts nor extends the backoff.
  const bool again = (event == Event::kBreaksProtocol && (quarantined() || foreign())) ||
                     (event == Event::kIsForeign && foreign());
  const bool idle = probe == nullptr || !probe->under_way;
  if (idle && (again || event == Event::kNotSeen)) return false;
  const size_t before = state_.index();
  state_ = After(state_, event, NextProbe(event, now, entropy));
  return state_.index() != before;
}

bool Membership::TakeProbe(Micros now) {
  Probe* const probe = ProbeOf(state_);
  if (probe == nullptr || probe->under_way || now < probe->at) return false;
  return probe->under_way = true;
}

}  // namespace firn::client
