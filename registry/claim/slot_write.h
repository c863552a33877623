#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/time/entropy.h"
#include "registry/claim/claim_options.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/past_holders.h"
#include "registry/cluster/records.h"
#include "registry/cluster/slot.h"
#include "registry/seam/async_registry.h"

namespace firn {

// A guarded change of one slot: check(meta at M) + set(record at V), the entry for the holding that
// it ends, the change of `live`, and check(era).
struct SlotChange {
  enum class Live { kLeave, kCreate, kReplace, kErase };

  int64_t session = 0;  // the session of the reads that the change is based on
  Tenure::Terms over;   // the state read: M and era, V and Z, nonce, word and bound at V
  SlotRecord record;    // the new record
  Live live = Live::kLeave;
  std::string endpoint;  // for the new `live`
  // The holder whose name the new record replaces, and those after it that were never recorded.
  // They are added to the slot's past, by which a server with a copied state folder recognises that
  // a lease has ended (FindKeptFault). A past that is damaged or not permitted never fails the
  // change.
  std::vector<PastHolder> ended{};
};

// Returns the record of a claim of this process, without word, bound and writer.
SlotRecord RecordOf(const ClaimOptions& options, const Nonce& nonce, WallMs since,
                    const std::string& others);

// Returns the holdings that end at `from`, where `self` begins: the recorded one, and the offline
// ones of processes on the same machine that resumed its claim.
std::vector<PastHolder> EndedHolders(PastHolder recorded, const std::vector<OfflineHolder>& offline,
                                     const ClaimantIdentity& self, WallMs from);

// The result of a change.
struct SlotWritten {
  enum class Outcome {
    kApplied,
    kNotApplied,   // not sent; a later attempt may succeed
    kLiveExists,   // failed only because `live` exists
    kLiveMissing,  // failed only because `live` is missing
    kOther,        // root node, version, creation or nonce differ from the state read: check
    kUnknown,      // no answer
  };

  Outcome outcome = Outcome::kUnknown;
  std::string reason{};  // why it is not applied, as a sentence
  // The record as stored, if the change was applied.
  int64_t version = 0;
  WallMs bound{};
  std::string others{};     // members of later versions
  WallMs registry_clock{};  // 0: not known
};

// Sends one change and determines its outcome. Used for claims, renewals and releases.
//
//  1. Ok, and the answer shows V's successor (node_version.h: versions wrap) and creation Z:
//     applied.
//  2. Unknown: read root node and record back, after a sync. Our nonce and word, a bound at least
//     ours, creation Z, the root node at M and a version above V: applied, and the values read are
//     adopted. Still version V with the nonce, word and bound read before, in the same cluster, not
//     frozen, with a floor that is not above the claim's base: the same bytes are sent again from
//     V; the first to arrive wins, and both are equal. Anything else belongs to another process;
//     our own nonce with another word belongs to a copy of this process.
//  3. Sent only in the session in which root node and record were read. Another session may reach a
//     registry that was wiped and re-created, where the same numbers mean something else. Reading
//     back is safe in any session: the nonce is random.
//  4. Never reads the new version and sets again: that would overwrite another process's write.
//  5. M, V and Z alone prove nothing: in a tree that was wiped and re-created they recur. The era
//     does not, so every multi checks it.
//  6. If a holding ends, the slot's past is read first, and again if it has changed meanwhile: then
//     a process that lost the slot has added itself. Without an answer to the first read, nothing
//     is sent.
//
// If the task is destroyed before its end, the change may still be applied: an unused version.
inline constexpr int kSendsMax = 3;
inline constexpr int kReadBacksMax = 4;
Task<SlotWritten> WriteSlot(AsyncRegistry* registry, Entropy* entropy, SlotChange change);

}  // namespace firn
