#pragma once

#include <optional>
#include <string>

#include "common/base/units.h"
#include "registry/cluster/nonce.h"
#include "registry/seam/coordinator.h"
#include "registry/seam/mailbox.h"
#include "registry/seam/synced_read.h"

namespace firn {

// Freezes a cluster whose ledgers went back in time: from the moment it is acknowledged nobody
// claims a machine id or takes a range until an operator has restored it. It tries until somebody,
// itself or another, has frozen it, or until the data that it is about are gone: restoring begins
// another era, and so does whoever makes a cluster where there is none.
//
// Owned by the control thread.
class LedgerFreeze {
 public:
  static constexpr Milliseconds kRetry{1000};

  explicit LedgerFreeze(Coordinator& coordinator) : coordinator_(coordinator) {}

  // `era` is that of the data in which the loss was seen; `why` stands in the cluster's root node
  // for the operator. Nothing when the same era's is on its way; in the place of any other.
  void Begin(const Nonce& era, std::string why);

  void Tick(BootMs now);

  bool on_its_way() const { return order_.has_value(); }

 private:
  struct Order {
    Nonce era;
    std::string why;
  };

  void Ask();
  void OnRoot(const Nonce& era, const Result<Nodes>& nodes);
  void OnSet(const Nonce& era, const WriteOutcome& answer);

  Coordinator& coordinator_;
  Mailbox mailbox_;
  std::optional<Order> order_;
  bool asked_ = false;  // an answer is awaited
  int64_t session_ = 0;
  BootMs now_;
  BootMs try_at_;
};

}  // namespace firn
