#pragma once

#include <optional>
#include <string>

#include "common/units.h"
#include "registry/coordinator.h"
#include "registry/mailbox.h"
#include "registry/synced_read.h"

namespace firn {

// Freezes a cluster whose ledgers went back in time: from the moment it is acknowledged nobody
// claims a machine id or takes a range until an operator has restored it. It tries until somebody,
// itself or another, has frozen it; a cluster that is not there cannot be frozen and need not be.
//
// Owned by the control thread.
class LedgerFreeze {
 public:
  static constexpr Milliseconds kRetry{1000};

  explicit LedgerFreeze(Coordinator& coordinator) : coordinator_(coordinator) {}

  // `why` stands in the cluster's root node for the operator. Nothing when one is on its way.
  void Begin(std::string why);

  void Tick(BootMs now);

  bool on_its_way() const { return why_.has_value(); }

 private:
  void Ask();
  void OnRoot(const Result<Nodes>& nodes);
  void OnSet(const WriteOutcome& answer);

  Coordinator& coordinator_;
  Mailbox mailbox_;
  std::optional<std::string> why_;
  bool asked_ = false;  // an answer is awaited
  int64_t session_ = 0;
  BootMs now_;
  BootMs try_at_;
};

}  // namespace firn
