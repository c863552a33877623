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

// Ranges of dated tags: the ledger itself picks them, by the registry's own clock (PickDated). That
// clock shows in what the registry answers to a write; who has not been told for a while asks it,
// by a write of the clock node, before the ledger. Thread-safe; answers come on the control thread.
class DatedSource final : public RangeSource {
 public:
  // A telling is relied on for so long; meanwhile the boot clock carries it.
  static constexpr Milliseconds kFresh{60'000};
  // One that took longer is not believed: the process may have slept meanwhile.
  static constexpr Milliseconds kTellingMost{2'000};
  // The local clock confirms the registry's when they differ by no more.
  static constexpr Milliseconds kApartMost{10'000};

  // All but `control` outlive it; registry and ledger are used on the control thread only.
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
  // What waits for the registry's answer holds this weakly: it may come when the source has gone.
  const std::shared_ptr<DatedSource*> self_ = std::make_shared<DatedSource*>(this);
};

}  // namespace firn
