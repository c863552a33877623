#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "server/lease/lease_desk.h"

namespace firn::front {

inline const LeaseReply kGrantedLease{
    .verdict = LeaseVerdict::kGranted,
    .terms = {.lease = "secret", .server = "10.0.0.7:7609", .machine = MachineId(564)}};

// A desk for leases that answers as the test says: at once with `reply`, or, if that is empty, when
// the test calls Give.
class ScriptedLeases final : public LeaseDesk {
 public:
  std::shared_ptr<const LeaseAnswer> Call(LeaseCall call) override {
    calls.push_back(std::move(call));
    auto answer = std::make_shared<LeaseAnswer>();
    if (reply) {
      answer->Give(*reply);
    } else {
      waiting.push_back(answer);
    }
    return answer;
  }
  std::vector<LeaseShown> List() const override { return shown; }
  LeaseCounts counts() const override { return {}; }

  void Give(const LeaseReply& given) {
    for (const auto& answer : waiting) answer->Give(given);
    waiting.clear();
  }

  std::vector<LeaseShown> shown{};
  std::optional<LeaseReply> reply{};
  std::vector<LeaseCall> calls;
  std::vector<std::shared_ptr<LeaseAnswer>> waiting;
};

}  // namespace firn::front
