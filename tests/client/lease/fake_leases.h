#pragma once

#include <string>

#include "thrift/gen/firn_types.h"

namespace firn {

// How a fake server answers requests about leases.
struct FakeLeases {
  enum class Answer {
    kTerms,    // grants, extends, or ends it
    kUnknown,  // LeaseRefusal UNKNOWN_LEASE, and so on
    kOutdated,
    kRevoked,
    kAnotherServers,  // that of `server`
    kNoLeases,
    kLaterFault,  // a LeaseFault of a later version of the contract
    kNoMethod,    // as a server that is older than leases
    kClaiming     // Refusal NOT_READY that says that no other server may help
  };
  Answer answer = Answer::kTerms;
  std::string server{};
  int machine = 7;
  std::string named = "10.0.0.1:7609";  // server in its terms

  // Throws the LeaseRefusal that the answer is, if any.
  void Refuse() const;
  // The same, or sets the terms of a lease of the minute from now on.
  void Promise(const std::string& lease, wire::LeaseTerms& out) const;
};

}  // namespace firn
