#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/talk.h"

namespace firn {

// What a claimant looks for.
struct SlotWish {
  uint32_t rack = 0;
  uint32_t workers = 0;              // of the rack
  std::optional<uint32_t> worker{};  // this one or none
  std::optional<Slot> hinted{};      // this one first
  std::string owner;                 // who asks: its own dead session's `live` is no hindrance
  WallMs now;                        // where the cluster's ids are by now
  WallMs id_time;                    // where our own are: for slots that we had ourselves
  Milliseconds released_ahead{0};    // how far ahead a released slot's bound may lie
};

// A slot as it was read: what a claim of it starts from.
struct SurveyedSlot {
  Slot slot;
  int64_t version = 0;
  int64_t created_zxid = 0;
  SlotRecord record;
  bool live = false;
};

enum class SlotFitness {
  kNeverUsed,
  kPassed,   // its bound lies behind us, or it was released to just ahead of us
  kAhead,    // its bound lies ahead: not touched, live or not
  kPoison,   // so far ahead that somebody's clock was wrong
  kRetired,  // by an operator
};

// Pure: whether a slot may be claimed as far as its record says.
SlotFitness FitnessOf(const SlotRecord& record, const SlotWish& wish);

// Pure: why the one slot that was wanted is not to be had, by whom it is held and until when, from
// what was read of it.
std::string WhyNotFree(Slot slot, const Result<Node>& node, const SlotWish& wish);

// What a survey has found.
struct Surveyed {
  std::vector<SurveyedSlot> candidates{};  // what to try, best first
  std::string reason{};                    // why there are none
  std::optional<WallMs> earliest{};        // of the bounds that lie ahead
  std::vector<std::string> alarms{};  // of slots that an operator should look at, a sentence each
};

// Finds slots to claim: the hinted one when it is free; some never used, at random; else those
// whose bound has passed, at random from the older half, and that are not live or have been beyond
// their bound for long.
//
// Reads 32 slots at a time in random order and stops at the first batch that holds one never used,
// so that hundreds of servers that start at once neither read everything nor all want the same.
// Records that cannot be read are skipped.
Task<Surveyed> SurveySlots(Talk* talk, Entropy* entropy, SlotWish wish);

inline constexpr size_t kSurveyBatch = 32;
inline constexpr size_t kCandidatesMax = 8;

}  // namespace firn
