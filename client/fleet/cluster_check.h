#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "client/server_source.h"
#include "client/wire/ask.h"

namespace firn::client {

// Tells the servers of this client's cluster from others.
//
//  1. A field that is known must be matched by every server; one that is not is settled by the
//     first server that answers.
//  2. A server that does not know its own cluster yet is not of another one; where the cluster is
//     known it must not be asked all the same.
//  3. What the options or the source say replaces what a server has settled.
//
// A value, thread-compatible.
class ClusterCheck {
 public:
  // `uuid`: what the options say; empty when they do not.
  explicit ClusterCheck(std::string uuid) : wanted_uuid_(std::move(uuid)) { Learn({}); }

  // What a source says; empty fields say nothing.
  void Learn(const ClusterIdentity& identity);

  // Rule 2: such a server is to be left for a while.
  bool KnowsTooLittle(const ServerFacts& facts) const {
    return facts.cluster_uuid.empty() && !known_.uuid.empty();
  }

  // A sentence when the server that says `facts` is not of this cluster.
  std::optional<std::string> FaultOf(const ServerFacts& facts);

  const ClusterIdentity& known() const { return known_; }

 private:
  std::string wanted_uuid_;
  ClusterIdentity known_;
};

}  // namespace firn::client
