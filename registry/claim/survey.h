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
#include "registry/seam/mailbox.h"

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

enum class Fitness {
  kNeverUsed,
  kPassed,   // its bound lies behind us, or it was released to just ahead of us
  kAhead,    // its bound lies ahead: not touched, live or not
  kPoison,   // so far ahead that somebody's clock was wrong
  kRetired,  // by an operator
};

// Pure: whether a slot may be claimed as far as its record says.
Fitness FitnessOf(const SlotRecord& record, const SlotWish& wish);

// Pure: why the one slot that was wanted is not to be had, by whom it is held and until when, from
// what was read of it.
std::string WhyNotFree(Slot slot, const Result<Node>& node, const SlotWish& wish);

// Finds slots to claim: the hinted one when it is free; some never used, at random; else those
// whose bound has passed, at random from the older half, and that are not live or have been beyond
// their bound for long.
//
// Reads 32 slots at a time in random order and stops at the first batch that holds one never used,
// so that hundreds of servers that start at once neither read everything nor all want the same.
// Records that cannot be read are skipped. Owned by the control thread.
class Survey {
 public:
  static constexpr size_t kBatch = 32;
  static constexpr size_t kCandidatesMax = 8;

  Survey(Coordinator& coordinator, Entropy& entropy, SlotWish wish);

  // Goes on with what has arrived.
  void Tick() { mailbox_.Open(); }

  const SlotWish& wish() const { return wish_; }
  bool done() const { return done_; }
  // When done: what to try, best first.
  const std::vector<SurveyedSlot>& candidates() const { return candidates_; }
  // When done without candidates: why, and the moment of the earliest bound, if one lies ahead.
  const std::string& reason() const { return reason_; }
  std::optional<WallMs> earliest() const { return earliest_; }
  // Slots that an operator should look at, a sentence each.
  const std::vector<std::string>& alarms() const { return alarms_; }

 private:
  void ReadFirst(Slot slot);
  void ListRack();
  void OnListed(const Result<std::vector<std::string>>& names);
  void ReadBatch();
  void OnBatch();
  void CheckLives();
  void OnLives();
  void Keep(Slot slot, const Result<Node>& node);
  void Skip(Slot slot, const Status& why);
  void AskLive(SurveyedSlot& slot);
  bool Hindered(const SurveyedSlot& slot) const;
  void End(std::string reason);

  Coordinator& coordinator_;
  Entropy& entropy_;
  const SlotWish wish_;
  Mailbox mailbox_;

  bool done_ = false;
  std::string reason_;
  std::string wanted_;  // why the wanted slot is not to be had
  std::vector<SurveyedSlot> candidates_;
  std::vector<std::string> alarms_;
  std::optional<WallMs> earliest_;

  std::vector<Slot> slots_;  // of the rack, in the order of reading
  size_t next_ = 0;          // of them, to be read
  size_t awaited_ = 0;
  std::vector<SurveyedSlot> passed_;
  size_t looked_at_ = 0;  // of passed_: their `live` is known
  size_t ahead_ = 0;
  size_t live_ = 0;
  size_t unreadable_ = 0;
  bool unanswered_ = false;
};

}  // namespace firn
