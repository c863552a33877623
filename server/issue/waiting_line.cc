#include "server/issue/waiting_line.h"

#include <algorithm>

namespace firn {
namespace {

// Places from the front that are looked at to find out when a call's turn comes.
constexpr int kSeen = 8;
// The rate is measured over half of this time to all of it, and not trusted before a tenth.
constexpr std::chrono::milliseconds kMeasured{200};
// Callers at other threads notice late that it is their turn, and a call that times out shortly
// before its end costs all that it has got: a call must fit into 7/8 of its patience.
constexpr int64_t kParts = 8, kUsedParts = 7;
// Longer waits are found to be shorter in time.
constexpr std::chrono::milliseconds kAskAgain{5};

// value * by / of, for values that fit.
int64_t Scaled(int64_t value, int64_t by, int64_t of) {
  __extension__ using Wide = __int128;
  return static_cast<int64_t>(
      std::min<Wide>(static_cast<Wide>(value) * by / std::max<int64_t>(of, 1), INT64_MAX / 2));
}

}  // namespace

WaitingLine::Micros WaitingLine::TimeFor(int64_t ids, const Portions& portions, Micros now) const {
  const Micros planned(Scaled(ids, portions.every.count(), portions.ids));
  const Micros measured = now - since_;
  if (given_ == 0 || measured < kMeasured / 10) return planned;
  return std::max(planned, Micros(Scaled(ids, measured.count(), given_)));
}

std::optional<WaitingLine::Micros> WaitingLine::Join(Place& place, int64_t count,
                                                     const Portions& portions, Micros patience,
                                                     Micros now) {
  const std::lock_guard lock(mutex_);
  const int64_t lanes = std::max<int64_t>(portions.lanes, 1);
  if (callers_.empty()) {
    since_ = now;
    given_ = 0;
  } else {
    const Micros limit(Scaled(patience.count(), kUsedParts, kParts));
    const Micros wait = TimeFor(missing_ / lanes + count, portions, now);
    if (wait > limit) return wait - limit;
  }
  callers_.push_back(count);
  missing_ += count;
  place.line_ = this;
  place.missing_ = std::prev(callers_.end());
  return std::nullopt;
}

// As many calls as there are lanes take ids.
bool WaitingLine::IsTurn(const Place& place, const Portions& portions, Micros* again) const {
  const std::lock_guard lock(mutex_);
  int64_t before = 0;
  int64_t rank = 0;
  for (auto caller = callers_.begin(); caller != place.missing_; ++caller, ++rank) {
    if (rank == kSeen + portions.lanes) {
      *again = kAskAgain;
      return false;
    }
    before += *caller;
  }
  if (rank < portions.lanes) return true;
  const Micros wait(Scaled(before, portions.every.count(), portions.ids));
  *again = std::clamp<Micros>(wait / std::max<int64_t>(portions.lanes, 1),
                              std::max<Micros>(portions.every, Micros(500)), kAskAgain);
  return false;
}

void WaitingLine::Note(const Place& place, int64_t missing, Micros now) {
  const std::lock_guard lock(mutex_);
  const int64_t got = *place.missing_ - missing;
  *place.missing_ = missing;
  missing_ -= got;
  given_ += got;
  if (now - since_ > kMeasured) {
    since_ = now - (now - since_) / 2;
    given_ /= 2;
  }
}

void WaitingLine::Remove(std::list<int64_t>::iterator missing) {
  const std::lock_guard lock(mutex_);
  missing_ -= *missing;
  callers_.erase(missing);
}

}  // namespace firn
