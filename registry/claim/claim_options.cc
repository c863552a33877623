#include "registry/claim/claim_options.h"

#include <string>

#include "common/base/faults.h"

namespace firn {

Status ClaimOptions::Check() const {
  Faults faults;
  const auto positive = [&faults](Milliseconds value, std::string_view name) {
    if (value <= Milliseconds(0)) faults.Add(std::string(name) + " must be more than 0");
  };
  positive(window, "the claim's window");
  positive(session_timeout, "the session timeout");
  positive(skew_max, "the permitted skew");
  positive(release_wait, "the wait for a release");
  if (window > kWindowMax) faults.Add("the claim's window must be at most 6 hours");
  if (probation < Milliseconds(0)) faults.Add("the probation must not be negative");
  if (restore_probation < Milliseconds(0)) {
    faults.Add("the probation after a restore must not be negative");
  }
  if (identity.owner.empty()) faults.Add("the owner's name is missing");
  if (identity.pid < 0) faults.Add("the process id must not be negative");
  return std::move(faults).ToStatus();
}

}  // namespace firn
