#include "server/issue/patient_caller.h"

#include <algorithm>

namespace firn {

bool PatientCaller::Issue(IssueCall& call) {
  call.patience = patience_;
  Verdict verdict = issuer_.Issue(call);
  if (verdict != Verdict::kWait) return verdict == Verdict::kIssued;
  const BootMs patience_ends = clock_.Boot() + std::max(patience_, call.waits_at_most());
  while (verdict == Verdict::kWait) {
    if (!call.has_all_ids()) {
      if (clock_.Boot() >= patience_ends) {
        issuer_.GiveUp(call);
        return false;
      }
      sleep_(call.ask_again_in());
    }
    verdict = issuer_.Issue(call);
  }
  return verdict == Verdict::kIssued;
}

bool PatientCaller::IssueOne(IssueCall& call, const Tag& tag, const Request& request, int64_t* id) {
  if (issuer_.TryOne(tag, request.method, id)) return true;
  call.Begin(tag, request);
  if (!Issue(call)) return false;
  *id = call.runs()[0].first;
  return true;
}

}  // namespace firn
