#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "common/base/status.h"
#include "common/base/units.h"
#include "common/id/lease_grant.h"
#include "server/front/desk/backend.h"
#include "server/front/desk/tag_rights.h"
#include "server/front/net/protocol.h"
#include "server/issue/refusal.h"
#include "server/lease/lease_desk.h"

namespace firn::front {

struct LeaseEnded {};

// A refusal for which there is no Reason.
struct LeaseRefusal {
  int fault;              // the number in wire::LeaseFault
  std::string_view name;  // its name there, such as "UNKNOWN_LEASE"
  int http_status;
  std::string message;
  std::string server;  // of ANOTHER_SERVERS
};

using LeaseResult = std::variant<LeaseGrant, LeaseEnded, Refusal, LeaseRefusal>;

// Turns the requests for leases of all protocols on one IO thread into answers. Checks the client's
// right and the request; the request then waits until the control thread has answered.
class LeaseCalls {
 public:
  // Maximum time for which a request waits: a claim needs several answers of the registry.
  static constexpr int64_t kPatienceMs = 5'000;

  // `leases`: null if the server grants none. Both must outlive it.
  LeaseCalls(const Backend& backend, LeaseDesk* leases);

  // The answer of the control thread.
  using Waiting = std::shared_ptr<const LeaseAnswer>;

  // Starts the call that `read` returns as a Result<LeaseCall>. Nullopt: park the request with
  // `waiting`, and call Continue later. The last attempt always has a result.
  template <typename Read>
  std::optional<LeaseResult> Ask(Waiting& waiting, const DoorCall& door, Read&& read) {
    LeaseClient client;
    if (std::optional<LeaseResult> refusal = WhyNot(door, client)) return refusal;
    Result<LeaseCall> call = read();
    if (call.ok()) {
      if (Status fault = Check(*call); !fault.ok()) call = std::move(fault);
    }
    if (!call.ok()) return BadRequest(call.status());
    if (auto* ask = std::get_if<LeaseAsk>(&*call)) ask->client = std::move(client);
    waiting = leases_->Call(*std::move(call));
    return Continue(*waiting, door);
  }
  static std::optional<LeaseResult> Continue(const LeaseAnswer& waiting, const DoorCall& door);

 private:
  // Returns the refusal if the client may not lease. Sets `client` if there is a file of rights.
  std::optional<LeaseResult> WhyNot(const DoorCall& door, LeaseClient& client);
  static Status Check(const LeaseCall& call);
  static LeaseResult BadRequest(const Status& status) {
    return Refusal{Reason::kBadRequest, status.message(), 0, false};
  }

  LeaseDesk* const leases_;
  std::optional<TagRights::Reader> rights_{};
};

}  // namespace firn::front
