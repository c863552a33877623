#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/seam/async_registry.h"
#include "registry/seam/coordinator.h"

namespace firn {

// The criteria for a slot to claim.
struct SlotQuery {
  uint32_t rack = 0;
  uint32_t workers = 0;              // in the rack
  std::optional<uint32_t> worker{};  // accept only this one
  std::optional<Slot> hinted{};      // try this one first
  std::string owner;                 // the claimant, whose `live` of a dead session is ignored
  WallMs now;                        // the cluster's id time
  WallMs id_time;                    // our id time, for slots that we held ourselves
  Milliseconds released_ahead{0};    // how far ahead a released slot's bound may be
  // The share of the rack's slots that is for leases, in percent: the slots with the highest
  // workers. Leases use only these slots, and servers prefer the others.
  int64_t lease_share = 0;
  bool for_lease = false;
};

// A slot as read: the starting point of a claim.
struct SurveyedSlot {
  Slot slot;
  int64_t version = 0;
  int64_t created_zxid = 0;
  SlotRecord record;
  bool live = false;
};

enum class SlotState {
  kNeverUsed,
  kPassed,   // its bound has passed, or it was released and its bound is at most a window ahead
  kAhead,    // its bound is ahead: not touched, live or not
  kPoison,   // its bound is more than a day ahead, so a clock was wrong
  kRetired,  // by an operator
};

// Pure: returns whether a slot may be claimed according to its record.
SlotState StateOfSlot(const SlotRecord& record, const SlotQuery& query);

// Pure: returns why the requested slot cannot be claimed, with its holder and bound, from its node
// as read.
std::string WhyNotFree(Slot slot, const Result<Node>& node, const SlotQuery& query);

// The result of a survey.
struct Surveyed {
  std::vector<SurveyedSlot> candidates{};  // slots to try, best first
  std::string reason{};                    // why there are none
  bool none_free = false;                  // all slots were read, and the rack has no free one
  std::optional<WallMs> earliest{};        // earliest of the bounds ahead
  std::vector<std::string> alarms{};       // slots that need an operator, one sentence each
};

// Finds slots to claim: the hinted one if it is free; otherwise unused ones, at random; otherwise
// those whose bound has passed, at random from the older half, unless they are live and passed
// their bound less than kLiveGrace ago. The slots for leases are searched only if the others have
// none.
//
// For a lease: those whose bound has passed, otherwise unused ones, all from the slots for leases.
//
// Reads 32 slots at a time in random order and stops at the first batch with an unused slot (for a
// lease: with a used one), so that hundreds of servers that start together neither read everything
// nor try the same slots.
// Skips records that cannot be read.
Task<Surveyed> SurveySlots(AsyncRegistry* registry, Entropy* entropy, SlotQuery query);

inline constexpr size_t kSurveyBatch = 32;
inline constexpr size_t kCandidatesMax = 8;

}  // namespace firn
