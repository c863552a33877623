#include "client/fleet/fitness.h"

#include <utility>

namespace firn::client {

Fitness::Look* Fitness::LookOf(Standing& standing) {
  if (auto* draining = std::get_if<Draining>(&standing)) return &draining->look;
  if (auto* quarantined = std::get_if<Quarantined>(&standing)) return &quarantined->look;
  if (auto* foreign = std::get_if<Foreign>(&standing)) return &foreign->look;
  return nullptr;
}

Fitness::Standing Fitness::After(const Standing& from, Event event, Micros look_at) {
  Standing to = from;
  Look* const look = LookOf(to);
  const bool shut =
      !std::holds_alternative<Member>(from) && !std::holds_alternative<Draining>(from);
  const bool held = shut && !look->under_way;
  switch (event) {
    case Event::kListed:
      return Member{};
    case Event::kGivesIds:
      return shut ? from : Member{};
    case Event::kIsForeign:
      return Foreign{{.at = look_at}};
    case Event::kBreaksProtocol:
      if (std::holds_alternative<Foreign>(from)) return Foreign{{.at = look_at}};
      return Quarantined{{.at = look_at}};
    case Event::kSaysDraining:
      if (look == nullptr) return Draining{{.at = look_at}};
      return from;
    case Event::kSeenStaying:
      return held ? from : Member{};
    case Event::kSeenDraining:
      return held ? from : Draining{{.at = look_at}};
    case Event::kNotSeen:
      if (look != nullptr && look->under_way) *look = {.at = look_at};
      return to;
  }
  return from;
}

Micros Fitness::NextLook(Event event, Micros now, Entropy& entropy) {
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

bool Fitness::Hear(Event event, Micros now, Entropy& entropy) {
  const Look* const look = LookOf(standing_);
  // The same event from another connection neither restarts nor extends the backoff.
  const bool again = (event == Event::kBreaksProtocol && (quarantined() || foreign())) ||
                     (event == Event::kIsForeign && foreign());
  const bool idle = look == nullptr || !look->under_way;
  if (idle && (again || event == Event::kNotSeen)) return false;
  const size_t before = standing_.index();
  standing_ = After(standing_, event, NextLook(event, now, entropy));
  return standing_.index() != before;
}

bool Fitness::TakeLook(Micros now) {
  Look* const look = LookOf(standing_);
  if (look == nullptr) return health.TakeProbe(now);
  if (look->under_way || now < look->at) return false;
  return look->under_way = true;
}

}  // namespace firn::client
