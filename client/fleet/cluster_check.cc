#include "client/fleet/cluster_check.h"

#include "common/base/cat.h"
#include "common/base/quote.h"

namespace firn::client {

void ClusterCheck::Learn(const ClusterIdentity& identity) {
  if (!identity.name.empty()) known_.name = identity.name;
  if (!identity.uuid.empty()) known_.uuid = identity.uuid;
  if (!wanted_uuid_.empty()) known_.uuid = wanted_uuid_;
  if (!identity.layout.empty()) known_.layout = identity.layout;
}

std::optional<std::string> ClusterCheck::FaultOf(const ServerFacts& facts) {
  if (facts.layout.empty()) return "its status does not name a layout";
  if (!known_.uuid.empty() && facts.cluster_uuid != known_.uuid) {
    return Cat("it belongs to cluster ", Quoted(facts.cluster_uuid), ", not to ",
               Quoted(known_.uuid));
  }
  if (!known_.layout.empty() && facts.layout != known_.layout) {
    return Cat("its layout is ", Quoted(facts.layout), ", but the cluster's is ",
               Quoted(known_.layout));
  }
  known_.uuid = facts.cluster_uuid;
  if (known_.name.empty()) known_.name = facts.cluster_name;
  if (known_.layout.empty()) known_.layout = facts.layout;
  return std::nullopt;
}

}  // namespace firn::client
