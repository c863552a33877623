#include "server/store/dated_source.h"

#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include "registry/cluster/slot.h"
#include "server/issue/dated/dated_pick.h"

namespace firn {

void DatedSource::Take(const TagDefinition& tag, int64_t size, TakeDone done) {
  control_([this, tag, size, done = std::move(done)] {
    if (time_.IsFresh(clock_.Boot(), kFresh)) return Extend(tag, size, done);
    AskClock([this, tag, size, done](const Status& told) {
      if (!told.ok()) return done(told.WithContext("reading the registry's clock"));
      Extend(tag, size, done);
    });
  });
}

void DatedSource::AskClock(std::function<void(Status)> done) {
  std::vector<Write> writes{Write::Set(kClockPath, "", Write::kAnyVersion)};
  const auto told = [self = std::weak_ptr(self_), asked_at = clock_.Boot(),
                     done = std::move(done)](const WriteOutcome& set) {
    const auto source = self.lock();
    if (!source) return;
    if (!set.status.ok()) return done(set.status);
    const WallMs shown = set.stats.empty() ? WallMs() : set.stats.front().modified;
    if (shown == WallMs()) return done(Unavailable("its answer has no time"));
    const BootMs now = (*source)->clock_.Boot();
    if (now - asked_at > kTellingMost) return done(Unavailable("its answer took too long"));
    (*source)->time_.Note(shown, now);
    done({});
  };
  registry_.Multi(std::move(writes), told);
}

// The clock is read after the ledger's node, so that no range begins a period before its time.
void DatedSource::Extend(const TagDefinition& tag, int64_t size, const TakeDone& done) {
  const auto pick = [this, size](const TagDefinition& now) -> Result<Range> {
    const std::optional<WallMs> time = time_.At(clock_.Boot());
    if (!time) return Unavailable("the registry's time is not known");
    const WallMs local = clock_.Wall();
    const bool apart = std::chrono::abs(local - *time) > kApartMost;
    return PickDated(now, size, *time, apart ? std::optional(local) : std::nullopt);
  };
  ledger_.Extend(tag, pick, done);
}

void DatedSource::GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) {
  control_([this, name = tag.name, tail, done = std::move(done)] {
    ledger_.GiveBack(name, tail, done);
  });
}

}  // namespace firn
