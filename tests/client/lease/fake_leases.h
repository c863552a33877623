#pragma once

#include <string>

#include "thrift/gen/firn_types.h"

namespace firn {

// A fake server's answers to requests about leases.
struct FakeLeases {
  enum class Answer {
    kTerms,    // grants, extends or ends the lease
    kUnknown,  // LeaseRefusal UNKNOWN_LEASE, and so on
    kOutdated,
    kRevoked,
    kAnotherServers,  // names `server` as the lease's server
    kNoLeases,
    kLaterFault,  // a LeaseFault that only a later version of the contract defines
    kNoMethod,    // like a server of a version before leases
    kClaiming     // a refusal NOT_READY that says that no other server may help
  };
  Answer answer = Answer::kTerms;
  std::string server{};
  int machine = 7;
  std::string named = "10.0.0.1:7609";  // server in its terms

  // Throws the LeaseRefusal if the answer is a refusal.
  void Refuse() const;
  // Like Refuse; otherwise sets terms for one minute from now.
  void Promise(const std::string& lease, wire::LeaseTerms& out) const;
};

}  // namespace firn
