#include "server/node/name_lookups.h"

#include <optional>
#include <utility>

#include "common/log/log.h"
#include "common/tag/tag_name.h"
#include "registry/cluster/first_use.h"

namespace firn {
namespace {

constexpr Milliseconds kSecond{1'000};
constexpr int kCreateTriesMax = 40;
constexpr Milliseconds kCreateAgain{20};
constexpr Milliseconds kKept{2'000};  // since the last call; waiting calls retry every few ms

// Increments `number` during its lifetime.
class Counted {
 public:
  explicit Counted(int& number) : number_(number) { ++number_; }
  ~Counted() { --number_; }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;

 private:
  int& number_;
};

}  // namespace

TagSeeker::Found NameLookups::Seek(std::string_view name, uint64_t& ticket, bool may_create) {
  if (!CheckTagName(name).ok()) return Found::kNothing;
  const std::lock_guard lock(mutex_);
  if (!reachable_) return Found::kUnanswered;
  auto found = readings_.find(name);
  if (ticket != 0) {
    if (found == readings_.end()) return Found::kUnanswered;
    found->second.idle_since = now_;
    return found->second.answered < ticket ? Found::kLooking : found->second.found;
  }
  if (found == readings_.end()) {
    if (left_ == 0) return Found::kLater;  // over budget, so the name is not stored either
    found = readings_.emplace(name, Readings{}).first;
  }
  Readings& wanted = found->second;
  ticket =
      wanted.sent + 1;  // the registry may have answered the reading in flight before this call
  if (wanted.wanted >= ticket) {
    wanted.may_create |= may_create;
    return Found::kLooking;
  }
  if (left_ == 0) return Found::kLater;
  --left_;
  wanted.wanted = ticket;
  wanted.may_create = may_create;
  return Found::kLooking;
}

void NameLookups::Tick(BootMs now) {
  async_registry_.Tick(now);
  const auto names = TakeWanted(now);
  std::erase_if(in_flight_, [](const auto& one) { return !one.second.busy(); });
  for (const auto& [name, may_create] : names) {
    Task<>& reading = in_flight_[name] = LookUp(name, may_create);
    async_registry_.Start(reading);
  }
}

std::vector<std::pair<std::string, bool>> NameLookups::TakeWanted(BootMs now) {
  std::vector<std::pair<std::string, bool>> names;
  const std::lock_guard lock(mutex_);
  now_ = now;
  reachable_ = async_registry_.session() != 0;
  if (std::exchange(session_, async_registry_.session()) != session_) session_since_ = now;
  if (now_ - since_ >= kSecond) {
    since_ = now_;
    left_ = kPerSecond;
    creations_left_ = kCreatedPerSecond;
  }
  for (auto& [name, readings] : readings_) {
    if (readings.sent != readings.answered || readings.wanted == readings.sent) continue;
    readings.sent = readings.wanted;
    names.emplace_back(name, readings.may_create);
  }
  std::erase_if(readings_, [this](const auto& entry) {
    const Readings& readings = entry.second;
    return readings.wanted == readings.answered && now_ - readings.idle_since > kKept;
  });
  return names;
}

Task<> NameLookups::LookUp(std::string name, bool may_create) {
  const Found found = co_await Use(name, may_create);
  if (found == Found::kLooking) there_(name);
  const std::lock_guard lock(mutex_);
  Readings& readings = readings_[name];
  readings.answered = readings.sent;
  readings.found = found;
  readings.idle_since = now_;
}

// Returns kLooking if the tag exists or was just created. All creations of a cluster write the same
// node, so this server sends one at a time. Another server may still write first.
Task<TagSeeker::Found> NameLookups::Use(std::string name, bool may_create) {
  using State = FirstUse::State;
  std::optional<Counted> place;
  for (int tries = 0; tries < kCreateTriesMax; ++tries) {
    const FirstUse use = co_await ReadFirstUse(&async_registry_, name);
    switch (use.state) {
      case State::kExists:
        co_return Found::kLooking;
      case State::kUndefined:
        co_return Found::kNothing;
      case State::kOtherEra:
        co_return Found::kOtherEra;
      case State::kFull:
        co_return Found::kFull;
      case State::kUnanswered:
        co_return Found::kUnanswered;
      case State::kMissing:
        break;
    }
    if (!may_create) co_return Found::kNoRight;
    if (!MayCreateNow(name)) co_return Found::kLater;
    if (!place) {
      if (creations_left_ == 0 || unfinished_ == kCreatedPerSecond) co_return Found::kLater;
      --creations_left_;
      place.emplace(unfinished_);
    }
    if (creating_) {  // waits, because all creations write the same node
      while (creating_) {
        const BootMs later = async_registry_.now() + kCreateAgain;
        co_await async_registry_.Until(later);
      }
      continue;
    }
    creating_ = true;
    const Written written = co_await async_registry_.Multi(use.writes);
    creating_ = false;
    if (written.fate == Written::Fate::kDone) {
      LogInfo("tag_created_by_use").With("tag", name)
          << "tag " << name << " was created by its first use";
      co_return Found::kLooking;
    }
    if (written.fate != Written::Fate::kRefused || written.status.code() == Code::kDenied) {
      LogWarning("tag_not_created").With("tag", name)
          << "tag " << name << " was not created: " << written.status;
      break;
    }
    const BootMs later = async_registry_.now() + kCreateAgain;
    co_await async_registry_.Until(later);
  }
  co_return Found::kUnanswered;
}

bool NameLookups::MayCreateNow(const std::string& name) const {
  return creatable_(name) && async_registry_.now() - session_since_ >= kNotCreatedFor;
}

}  // namespace firn
