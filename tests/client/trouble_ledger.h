#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "client/call_report.h"
#include "client/client_options.h"
#include "common/base/status.h"

namespace firn {

// Looks on at the calls of one client among servers that misbehave, one of which is always well and
// always listed:
//
//  1. No id is given twice, by whatever kind of call.
//  2. Every call ends, once; the end of the client ends those that are under way.
//  3. A call with time enough fails only where the well server was asked and this machine was too
//     slow for it, or where the retry budget was used up.
//
// Thread-safe.
class TroubleLedger {
 public:
  // One call, from before it begins; kept by its callback.
  struct Call {
    CallReport report{};
    bool patient = false;  // it has time enough
    std::atomic<bool> ended = false;
  };
  using CallPtr = std::shared_ptr<Call>;

  explicit TroubleLedger(std::string well) : well_(std::move(well)) {}

  CallPtr Began(bool patient);
  void Ended(Call& call, const Status& status, const std::vector<int64_t>& ids);
  // Calls that are under way fail from now on.
  void ClientEnds() { ending_ = true; }
  uint64_t under_way() const { return began_ - ended_; }

  struct Sum {
    uint64_t calls = 0, failed = 0, impatient = 0, denied = 0, slow = 0, ids = 0;
    Sum& operator+=(const Sum& other);
    std::string ToString() const;
  };
  // When all is over: every fault, a line each, and what there was.
  std::string Faults();
  Sum sum() const { return sum_; }

 private:
  void Fault(std::string text);
  void LookAtFailure(const Call& call, const Status& status);

  const std::string well_;
  std::atomic<uint64_t> began_ = 0, ended_ = 0;
  std::atomic<bool> ending_ = false;
  std::mutex mutex_;
  std::vector<int64_t> ids_;  // under mutex_, as all below
  Sum sum_;
  std::string faults_;
};

}  // namespace firn
