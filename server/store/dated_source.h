#pragma once

#include <cstdint>
#include <memory>

#include "common/time/clock.h"
#include "registry/seam/coordinator.h"
#include "server/issue/dated/registry_time.h"
#include "server/issue/segment/range_source.h"
#include "server/store/control_thread.h"
#include "server/store/ledger.h"

namespace firn {

// Ranges of dated tags, which the ledger picks by the registry's clock (PickDated). The registry's
// answers to writes contain its time. If there was no recent answer, the source writes the clock
// node before it uses the ledger. Thread-safe; answers are delivered on the control thread.
class DatedSource final : public RangeSource {
 public:
  // How long a reading of the registry's clock is used, extrapolated by the boot clock.
  static constexpr Milliseconds kFresh{60'000};
  // A reading that took longer is discarded: the process may have been paused.
  static constexpr Milliseconds kTellingMost{2'000};
  // If the clocks differ by more, the local one does not confirm the registry's (PickDated).
  static constexpr Milliseconds kApartMost{10'000};

  // All but `control` must outlive this; registry and ledger are used on the control thread only.
  DatedSource(Coordinator& registry, Ledger& ledger, PostToControl control, const Clock& clock,
              RegistryTime& time)
      : registry_(registry),
        ledger_(ledger),
        control_(std::move(control)),
        clock_(clock),
        time_(time) {}

  void Take(const TagDefinition& tag, int64_t size, TakeDone done) override;
  void GiveBack(const TagDefinition& tag, Range tail, GiveBackDone done) override;
  bool permits_no_buffer() const override { return false; }

 private:
  void AskClock(std::function<void(Status)> done);
  void Extend(const TagDefinition& tag, int64_t size, const TakeDone& done);

  Coordinator& registry_;
  Ledger& ledger_;
  const PostToControl control_;
  const Clock& clock_;
  RegistryTime& time_;
  // The registry's callbacks hold a weak reference to this, because they may run after the source
  // is destroyed.
  const std::shared_ptr<DatedSource*> self_ = std::make_shared<DatedSource*>(this);
};

}  // namespace firn
