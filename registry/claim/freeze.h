#pragma once

#include <cstdint>
#include <string>

#include "common/base/units.h"
#include "registry/claim/tenure.h"
#include "registry/cluster/records.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/mailbox.h"
#include "registry/seam/synced_read.h"

namespace firn {

// Stops all new claims of a cluster whose data went back in time, then looks at the holder's slot:
// from then on nobody can come in whom the holder does not see.
//
// A cluster that is not there cannot be frozen and need not be. One whose floor already lies at or
// above the holder's bound has been restored since: nobody can claim what the holder still uses.
// Owned by the control thread.
class Freeze {
 public:
  static constexpr int kTriesMax = 4;

  enum class Outcome {
    kPending,
    kSafe,     // frozen, restored or not there; nobody else's nonce is in the slot
    kForeign,  // the same, but somebody else's is
    kFailed,   // not acknowledged
  };

  // `why` stands in the cluster's root node for the operator.
  Freeze(Coordinator& coordinator, const Tenure::Terms& held, std::string why);

  // Goes on with what has arrived.
  void Tick() { mailbox_.Open(); }

  Outcome outcome() const { return outcome_; }
  const std::string& reason() const { return reason_; }

 private:
  void Ask();
  void OnMeta(const Result<Nodes>& nodes);
  void OnSet(const WriteOutcome& answer);
  void Look();
  void OnSlot(const Result<Nodes>& nodes);
  void End(Outcome outcome, std::string reason);

  Coordinator& coordinator_;
  const Tenure::Terms held_;
  const std::string why_;
  Mailbox mailbox_;
  Outcome outcome_ = Outcome::kPending;
  std::string reason_;
  int tries_ = 0;
  int64_t session_ = 0;  // in which the root node was read: another one's may only look the same
};

}  // namespace firn
