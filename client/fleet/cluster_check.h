#pragma once

#include <optional>
#include <string>

#include "client/server_source.h"
#include "client/wire/ask.h"

namespace firn::client {

// Decides whether a server belongs to this client's cluster.
//
//  1. Every server must match all fields that the client knows. The first server that answers
//     determines the unknown ones.
//  2. A server that does not know its own cluster yet is not foreign, but must not get calls if the
//     client knows the cluster.
//  3. Fields of the options or the source override fields of a server.
//
// A value, thread-compatible.
class ClusterCheck {
 public:
  // `uuid`: the cluster of the options, or empty.
  explicit ClusterCheck(std::string uuid) : wanted_uuid_(std::move(uuid)) { Learn({}); }

  // Adopts the non-empty fields of a source.
  void Learn(const ClusterIdentity& identity);

  // Rule 2: returns true if calls must not use the server yet.
  bool KnowsTooLittle(const ServerFacts& facts) const {
    return facts.cluster_uuid.empty() && !known_.uuid.empty();
  }

  // Returns why the server with these `facts` does not belong to this cluster; nullopt if it does.
  std::optional<std::string> FaultOf(const ServerFacts& facts);

  const ClusterIdentity& known() const { return known_; }

 private:
  std::string wanted_uuid_;
  ClusterIdentity known_;
};

}  // namespace firn::client
