#include "client/fleet/membership.h"

namespace firn::client {

Membership::State Membership::After(const State& from, Event event, Micros probe_at) {
  const Probe next{.at = probe_at};
  const bool shut = from.kind == Kind::kQuarantined || from.kind == Kind::kForeign;
  const bool held = shut && !from.probe.under_way;
  switch (event) {
    case Event::kListed:
      return {Kind::kMember};
    case Event::kGivesIds:
      return shut ? from : State{Kind::kMember};
    case Event::kIsForeign:
      return {Kind::kForeign, next};
    case Event::kBreaksProtocol:
      return {from.kind == Kind::kForeign ? Kind::kForeign : Kind::kQuarantined, next};
    case Event::kSaysDraining:
      return from.kind == Kind::kMember ? State{Kind::kDraining, next} : from;
    case Event::kSeenStaying:
      return held ? from : State{Kind::kMember};
    case Event::kSeenDraining:
      return held ? from : State{Kind::kDraining, next};
    case Event::kNotSeen:
      return from.probe.under_way ? State{from.kind, next} : from;
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
      return now + (quarantined() ? quarantine_ : probe_backoff_).Next(now, entropy);
    case Event::kListed:
    case Event::kGivesIds:
    case Event::kSeenStaying:
    case Event::kSeenDraining:
      break;
  }
  return now + kRecheck;
}

bool Membership::Hear(Event event, Micros now, Entropy& entropy) {
  // The same event from another connection neither restarts nor extends the backoff.
  const bool again = (event == Event::kBreaksProtocol && (quarantined() || foreign())) ||
                     (event == Event::kIsForeign && foreign());
  if (!state_.probe.under_way && (again || event == Event::kNotSeen)) return false;
  const Kind before = state_.kind;
  state_ = After(state_, event, NextProbe(event, now, entropy));
  return state_.kind != before;
}

}  // namespace firn::client
