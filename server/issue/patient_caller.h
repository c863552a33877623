#pragma once

#include <chrono>

#include "common/time/clock.h"
#include "server/issue/issuer.h"

namespace firn {

// Calls an issuer and sleeps while a call waits. For programs that can block a thread; a server
// parks the call instead. Thread-safe.
class PatientCaller {
 public:
  using Sleep = void (*)(std::chrono::microseconds);

  // Gives up a call that has waited for longer than `patience`. All arguments must outlive this.
  PatientCaller(Issuer& issuer, const Clock& clock, Milliseconds patience, Sleep sleep = &SleepFor)
      : issuer_(issuer), clock_(clock), patience_(patience), sleep_(sleep) {}

  // Returns true if call.runs() has exactly the requested ids; false if the call was refused
  // (call.refusal()).
  bool Issue(IssueCall& call);

  // Like Issue, for one id of `tag`. The fast path allocates nothing.
  bool IssueOne(IssueCall& call, const Tag& tag, const Request& request, int64_t* id);

 private:
  Issuer& issuer_;
  const Clock& clock_;
  const Milliseconds patience_;
  const Sleep sleep_;
};

}  // namespace firn
