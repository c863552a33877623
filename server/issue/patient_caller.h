#pragma once

#include <chrono>

#include "common/time/clock.h"
#include "server/issue/issuer.h"

namespace firn {

// Asks an issuer and sleeps through its waits, for programs that have a thread to spare; a server
// parks instead. Thread-safe.
class PatientCaller {
 public:
  using Sleep = void (*)(std::chrono::microseconds);

  // Gives up a call that has waited longer than `patience`. All must outlive this.
  PatientCaller(Issuer& issuer, const Clock& clock, Milliseconds patience, Sleep sleep = &SleepFor)
      : issuer_(issuer), clock_(clock), patience_(patience), sleep_(sleep) {}

  // True with exactly the ids asked for in call.runs(), false with call.refusal().
  bool Issue(IssueCall& call);

  // One id of `tag`: true with the id, false with call.refusal(). The short way allocates nothing.
  bool IssueOne(IssueCall& call, const Tag& tag, const Request& request, int64_t* id);

 private:
  Issuer& issuer_;
  const Clock& clock_;
  const Milliseconds patience_;
  const Sleep sleep_;
};

}  // namespace firn
