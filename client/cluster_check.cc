#include "client/cluster_check.h"

#include <algorithm>

#include "common/layout.h"
#include "common/quote.h"

namespace firn::client {

void ClusterCheck::Learn(const ClusterIdentity& identity) {
  if (!identity.name.empty()) known_.name = identity.name;
  if (!identity.uuid.empty()) known_.uuid = identity.uuid;
  if (!wanted_uuid_.empty()) known_.uuid = wanted_uuid_;
  if (!identity.layout.empty()) SetLayout(identity.layout);
}

std::optional<std::string> ClusterCheck::FaultOf(const ServerFacts& facts) {
  if (facts.layout.empty()) return "it does not say how its ids are laid out";
  if (!known_.uuid.empty() && facts.cluster_uuid != known_.uuid) {
    return "it is of the cluster " + Quoted(facts.cluster_uuid) + ", this is " +
           Quoted(known_.uuid);
  }
  if (!known_.layout.empty() && facts.layout != known_.layout) {
    return "its layout is " + Quoted(facts.layout) + ", the cluster's is " + Quoted(known_.layout);
  }
  known_.uuid = facts.cluster_uuid;
  if (known_.name.empty()) known_.name = facts.cluster_name;
  if (known_.layout.empty()) SetLayout(facts.layout);
  return std::nullopt;
}

void ClusterCheck::SetLayout(const std::string& text) {
  known_.layout = text;
  const Result<Layout> layout = Layout::Parse(text);
  const Field* version = layout.ok() ? layout->Find(FieldKind::kVersion) : nullptr;
  signed_ids_ = version != nullptr && version->shift + version->width == 64;
}

std::optional<std::string> FaultOfIds(const Ask& ask, const Reply& reply, bool signed_ids) {
  const auto wrong = [signed_ids](int64_t id) { return signed_ids ? id == 0 : id <= 0; };
  const auto fault = [](int64_t id) { return "no id of the cluster is " + std::to_string(id); };
  if (ask.method == Ask::Method::kGetId && wrong(reply.id)) return fault(reply.id);
  for (const int64_t id : reply.ids) {
    if (wrong(id)) return fault(id);
  }
  for (const IdRun& run : reply.runs) {
    if (wrong(run.first)) return fault(run.first);
  }
  return std::nullopt;
}

}  // namespace firn::client
