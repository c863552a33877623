#include "client/source/ask_pace.h"

#include <algorithm>
#include <utility>

namespace firn::client {
namespace {

constexpr Micros kAskAgainMin{500'000};
constexpr Micros kAskAgainMax{120'000'000};
constexpr Micros kSilenceMax{60'000'000};
constexpr Micros kTroubleMin{250'000};
constexpr Micros kTroubleSpread{750'000};

Micros Drawn(Micros below, Entropy& entropy) {
  return Micros(static_cast<int64_t>(entropy.Below(static_cast<uint64_t>(below.count()))));
}

}  // namespace

Micros AskPace::AfterAnswer(Milliseconds ask_again) {
  silence_ = kSilenceMin;
  return std::clamp(Micros(ask_again), kAskAgainMin, kAskAgainMax);
}

Micros AskPace::AfterSilence(Entropy& entropy) {
  const Micros pause = std::exchange(silence_, std::min(silence_ * 2, kSilenceMax));
  return pause / 2 + Drawn(pause, entropy);
}

Micros AskPace::AfterTrouble(Entropy& entropy) {
  return kTroubleMin + Drawn(kTroubleSpread, entropy);
}

}  // namespace firn::client
