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

// Errors that an owner could easily make, each injected at a seam, so that the product has no
// switch for any of them.
enum class OwnersMutant {
  kNone,
  kNoMargin,              // registry: beats say that their windows are shorter by a fifth
  kVersionUnheeded,       // registry: a takeover ends a beat whatever its version is
  kUnacknowledgedCounts,  // registry: an unknown renewal is reported as done
  kSessionUnheeded,       // registry: all sessions have one number
  kBeatOverForeign,       // registry: a renewal sets its beat whatever its version is
  kRootUnheeded,          // registry: a renewal checks neither the root node nor the era
  kChangeUnheeded,        // registry: versions and creations are compared, not names of changes
  kOwnBeatUnheeded,       // registry: a takeover does not check the beat of its server
  kPartitionUnheeded,     // registry: a takeover sets the partition whatever its version is
  kEndOverForeign,        // registry: a tenure ends its beat whatever its version is
  kUntilFromAnswer,       // taker: a term's end is counted from the answer to the renewal
  kComparesBefore,        // taker: compares before it takes the number
  kLoadsAfter,            // taker: loads the term after it has taken the number
  kUnloadsLate,           // taker: learns the end of a term after the partition was written
  kEarlierRangeUsed,      // taker: uses a range that was requested in an earlier term
};

// By number, from the first one after kNone on.
inline constexpr std::array<std::string_view, 15> kOwnersMutants{
    "no_margin",          "version_unheeded", "unacknowledged_counts", "session_unheeded",
    "beat_over_foreign",  "root_unheeded",    "change_unheeded",       "own_beat_unheeded",
    "partition_unheeded", "end_over_foreign", "until_from_answer",     "compares_before",
    "loads_after",        "unloads_late",     "earlier_range_used"};

// Between `Owners` and its connection.
class OwnersSeam final : public ForwardingCoordinator {
 public:
  enum class Purpose { kRenewal, kTakeover, kRelease, kEnd, kOther };

  // Without `watches`, no notification is delivered: two processes can then be kept in step.
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

  // How long the last renewal took that was acknowledged.
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
  std::map<std::string, Node> seen_;  // partitions, for a mutant
  int64_t takeovers_ = 0;
  int64_t releases_ = 0;
};

}  // namespace firn
