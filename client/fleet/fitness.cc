#include "client/fleet/fitness.h"

#include <utility>

namespace firn::client {

Fitness::Standing Fitness::After(const Standing& from, Event event, Micros now) {
  const auto* quarantined = std::get_if<Quarantined>(&from);
  const auto* draining = std::get_if<Draining>(&from);
  const bool held = quarantined != nullptr && !quarantined->looked_at;
  switch (event) {
    case Event::kListed:
      return Member{};
    case Event::kSpeaksNonsense:
      return Quarantined{.look_at = now + kRecheck};
    case Event::kSaysDraining:
      if (quarantined != nullptr) return from;
      return Draining{.look_at = now + kRecheck,
                      .doubted = draining == nullptr || draining->doubted};
    case Event::kSeenStaying:
      return held ? from : Member{};
    case Event::kSeenDraining:
      return held ? from : Draining{.look_at = now + kRecheck};
  }
  return from;
}

bool Fitness::Hear(Event event, Micros now) {
  if (event == Event::kListed) closed_until_.clear();
  const size_t before = standing_.index();
  standing_ = After(standing_, event, now);
  return standing_.index() != before;
}

void Fitness::BeginAnew() {
  health = Health();
  not_ready_until_ = Micros(0);
  store_down_until_.clear();
}

bool Fitness::TakeLook(bool lists_change, Micros now) {
  const auto due = [&](Micros& look_at) {
    if (lists_change || now < look_at) return false;
    look_at = now + kRecheck;
    return true;
  };
  if (auto* draining = std::get_if<Draining>(&standing_)) {
    const bool doubted = std::exchange(draining->doubted, false);
    if (due(draining->look_at) || doubted) return true;
  }
  if (auto* quarantined = std::get_if<Quarantined>(&standing_); quarantined != nullptr) {
    if (due(quarantined->look_at)) return quarantined->looked_at = true;
  }
  return health.TakeProbe(now);
}

ServerFitness Fitness::For(std::string_view tag, bool needs_machine_id, const KnownServer& listed,
                           Micros now) const {
  const bool leaves =
      listed.phase == ServerPhase::kDraining || listed.phase == ServerPhase::kOffline;
  const bool not_ready = listed.phase == ServerPhase::kNotReady || now < not_ready_until_;
  if (quarantined()) return ServerFitness::kQuarantined;
  if (draining() || leaves || IsBefore(closed_until_, tag, now)) return ServerFitness::kDraining;
  if (listed.disabled || listed.weight <= 0) return ServerFitness::kDisabled;
  if (health.resting() || (not_ready && needs_machine_id)) return ServerFitness::kResting;
  return IsBefore(store_down_until_, tag, now) ? ServerFitness::kResting : ServerFitness::kFit;
}

void Fitness::Remember(TagTimes& times, std::string_view tag, Micros until) {
  constexpr size_t kTagsMax = 1000;
  if (times.size() >= kTagsMax) times.clear();
  times[std::string(tag)] = until;
}

bool Fitness::IsBefore(const TagTimes& until, std::string_view tag, Micros now) {
  if (until.empty()) return false;
  const auto found = until.find(tag);
  return found != until.end() && now < found->second;
}

}  // namespace firn::client
