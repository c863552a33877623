#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/seam/talk.h"

namespace firn {

// A guarded change of one slot: check(meta at M) + set(record at V), whose holding ends with it,
// what becomes of `live`, and check(era).
struct SlotChange {
  enum class Live { kLeave, kCreate, kReplace, kErase };

  int64_t session = 0;  // in which its maker read what it builds on
  Tenure::Terms over;   // what he read or knows: M and era, V and Z, nonce, word and bound at V
  SlotRecord record;    // what it becomes
  Live live = Live::kLeave;
  std::string endpoint;  // for the new `live`
  // Whose name goes out of the record. It is added to the slot's past, which nothing hangs on: one
  // that cannot be read or written is left as it is.
  std::optional<PastHolder> ended{};
};

// What became of it.
struct SlotWritten {
  enum class Outcome {
    kApplied,
    kNotApplied,   // refused before it was sent; a later try may do
    kLiveExists,   // failed only because `live` is there
    kLiveMissing,  // failed only because `live` is not there
    kOther,        // meta, version, creation or nonce are not as the maker believed: look
    kUnknown,      // nobody answers
  };

  Outcome outcome = Outcome::kUnknown;
  std::string reason{};  // why it is not applied, in words
  // What stands in the record now, when it is applied.
  int64_t version = 0;
  WallMs bound{};
  std::string others{};     // what later versions have in it
  WallMs registry_clock{};  // 0: not told
};

// Sends one change and finds out what became of it. The conversation of claim, renewal and release.
//
//  1. Ok, and the answer shows V's successor (node_version.h: versions wrap) and creation Z:
//     applied.
//  2. Unknown: read meta and record back, after a sync. Our nonce and word, a bound at least ours,
//     creation Z, meta at M and a version above V: applied, and what was read is what counts. Still
//     version V with the nonce, word and bound that the maker read there, in the same cluster, not
//     frozen, with a floor that is not above the claim's base: the same bytes are sent again from
//     V; whichever of the two arrives first wins, and both say the same. Anything else is somebody
//     else's, and our own nonce with another word is a copy of this process.
//  3. Sent only in the session in which its maker read meta and record. Another session may lead to
//     a registry that was wiped and made anew, where the same numbers stand for something else.
//     Reading back is safe in any: the nonce is random.
//  4. Never read the new version and set again: that would write over whoever made it.
//  5. M, V and Z alone prove nothing: in a tree that was wiped and made anew they come again. The
//     era does not, so it is part of what is asked.
//  6. Where a holding ends, the slot's past is read first. Whoever else added to it meanwhile has
//     moved the record, too, so that V guards both.
//
// Destroyed before its end, it may still be applied: a version above V that nobody uses.
inline constexpr int kSendsMax = 3;
inline constexpr int kReadBacksMax = 4;
Task<SlotWritten> WriteSlot(Talk* talk, Entropy* entropy, SlotChange change);

}  // namespace firn
