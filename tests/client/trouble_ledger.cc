#include "tests/client/trouble_ledger.h"

#include <algorithm>

#include "common/base/cat.h"

namespace firn {

TroubleLedger::CallPtr TroubleLedger::Began(bool patient) {
  ++began_;
  auto call = std::make_shared<Call>();
  call->patient = patient;
  return call;
}

void TroubleLedger::Ended(Call& call, const Status& status, const std::vector<int64_t>& ids) {
  const std::lock_guard lock(mutex_);
  if (call.ended.exchange(true)) return Fault("a call ended twice");
  ++ended_;
  ++sum_.calls;
  sum_.ids += ids.size();
  ids_.insert(ids_.end(), ids.begin(), ids.end());
  if (!status.ok()) LookAtFailure(call, status);
}

void TroubleLedger::LookAtFailure(const Call& call, const Status& status) {
  ++sum_.failed;
  if (ending_) return;
  if (!call.patient) {
    ++sum_.impatient;
  } else if (status.message().find("retry budget") != std::string::npos) {
    ++sum_.denied;
  } else if (std::any_of(call.report.attempts.begin(), call.report.attempts.end(),
                         [this](const CallAttempt& one) { return one.server == well_; })) {
    ++sum_.slow;
  } else {
    Fault(Cat("a call failed without asking ", well_, ", which is well: ", status.message()));
  }
}

std::string TroubleLedger::Faults() {
  const std::lock_guard lock(mutex_);
  if (began_ != ended_) Fault(Cat(began_ - ended_, " calls did not end"));
  std::sort(ids_.begin(), ids_.end());
  const auto twice = std::adjacent_find(ids_.begin(), ids_.end());
  if (twice != ids_.end()) Fault(Cat("the id ", *twice, " was given twice"));
  if (!ids_.empty() && ids_.front() <= 0) Fault(Cat("the id ", ids_.front(), " was given"));
  return faults_;
}

void TroubleLedger::Fault(std::string text) {
  constexpr size_t kFaultsShown = 4'000;  // bytes
  if (faults_.size() < kFaultsShown) faults_ += text + "\n";
}

TroubleLedger::Sum& TroubleLedger::Sum::operator+=(const Sum& other) {
  calls += other.calls;
  failed += other.failed;
  impatient += other.impatient;
  denied += other.denied;
  slow += other.slow;
  ids += other.ids;
  return *this;
}

std::string TroubleLedger::Sum::ToString() const {
  return Cat(calls, " calls, ", ids, " ids; ", failed, " calls failed, ", impatient,
             " of them with little time, ", denied, " for want of a retry budget, ", slow,
             " as this machine was slow");
}

}  // namespace firn
