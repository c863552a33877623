#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/time/clock.h"
#include "tests/support/registry/forwarding_coordinator.h"
#include "tests/support/registry/memory_coordinator.h"

namespace firn {

// Plausible implementation errors of an owner. Each one is injected at a seam, so the product
// contains no switch for any of them.
enum class OwnersMutant {
  kNone,
  kNoMargin,              // registry: beats report windows that are a fifth too short
  kVersionUnheeded,       // registry: a takeover ends a beat without checking its version
  kUnacknowledgedCounts,  // registry: a renewal with unknown outcome is reported as successful
  kSessionUnheeded,       // registry: all sessions have one number
  kBeatOverForeign,       // registry: a renewal sets its beat without checking its version
  kRootUnheeded,          // registry: a renewal checks neither the root node nor the era
  kChangeUnheeded,        // registry: compares versions and creation times, not change ids
  kOwnBeatUnheeded,       // registry: a takeover does not check the beat of its own server
  kPartitionUnheeded,     // registry: a takeover sets the partition without checking its version
  kEndOverForeign,        // registry: a tenure ends its beat without checking its version
  kLeavingUnheeded,       // registry: beats do not say that their servers leave
  kYoungUnheeded,         // registry: beats do not say that their servers may not take partitions
  kUntilFromAnswer,   // taker: a term lasts from the answer to the renewal, not from its sending
  kComparesBefore,    // taker: compares the term before it takes the number
  kLoadsAfter,        // taker: loads the term after it has taken the number
  kUnloadsLate,       // taker: notices the end of a term after the partition was written
  kEarlierRangeUsed,  // taker: uses a range that was requested in an earlier term
};

// Names of the mutants, in the order of OwnersMutant, without kNone.
inline constexpr std::array<std::string_view, 17> kOwnersMutants{
    "no_margin",          "version_unheeded", "unacknowledged_counts", "session_unheeded",
    "beat_over_foreign",  "root_unheeded",    "change_unheeded",       "own_beat_unheeded",
    "partition_unheeded", "end_over_foreign", "leaving_unheeded",      "young_unheeded",
    "until_from_answer",  "compares_before",  "loads_after",           "unloads_late",
    "earlier_range_used"};

// Returns whether only a handover shows the error.
inline bool IsOfHandOver(OwnersMutant mutant) {
  return mutant == OwnersMutant::kLeavingUnheeded || mutant == OwnersMutant::kYoungUnheeded;
}

// The connection that `Owners` uses; injects the errors of mutants.
class OwnersSeam final : public ForwardingCoordinator {
 public:
  enum class Purpose { kRenewal, kTakeover, kRelease, kEnd, kOther };

  // Without `watches`, delivers no notifications, so that two processes can be kept in step.
  OwnersSeam(Coordinator& inner, const MemoryTree& tree, const Clock& clock, OwnersMutant mutant,
             bool watches)
      : ForwardingCoordinator(inner),
        tree_(tree),
        clock_(clock),
        mutant_(mutant),
        watches_(watches) {}

  void Read(const std::string& path, ReadDone done, Changed changed = {}) override;
  void Multi(std::vector<Write> writes, WriteDone done) override;
  int64_t session() const override;

  // Returns the duration of the last acknowledged renewal.
  Milliseconds latency() const { return latency_; }
  int64_t takeovers() const { return takeovers_; }
  int64_t releases() const { return releases_; }

 private:
  void Break(Purpose purpose, std::vector<Write>& writes) const;

  const MemoryTree& tree_;
  const Clock& clock_;
  const OwnersMutant mutant_;
  const bool watches_;
  Milliseconds latency_{0};
  std::map<std::string, Node> seen_;  // last read state of partitions, for a mutant
  int64_t takeovers_ = 0;
  int64_t releases_ = 0;
};

}  // namespace firn
