#include "registry/operate/operator_json.h"

#include <algorithm>
#include <string>

#include "common/tag/tag_fields.h"
#include "common/time/civil_time.h"

namespace firn {
namespace {

Json HolderJson(const PastHolder& holder) {
  return {{"owner", holder.owner},
          {"host", holder.host},
          {"pid", holder.pid},
          {"first_ms", holder.first.ms()},
          {"end_ms", holder.end.ms()},
          {"since", FormatRfc3339(holder.first)},
          {"until", FormatRfc3339(holder.end)}};
}

Json SlotJson(const AuditedSlot& slot) {
  Json json{{"machine", slot.machine.value()},
            {"worker", slot.slot.worker},
            {"rack", slot.slot.rack},
            {"use", SlotUseName(slot.use)},
            {"owner", slot.record.owner},
            {"host", slot.record.host},
            {"pid", slot.record.pid},
            {"build", slot.record.build},
            {"bound_ms", slot.record.bound.ms()},
            {"since_ms", slot.record.since.ms()},
            {"nonce", slot.record.nonce.text()},
            {"version", slot.version},
            {"live", slot.live.has_value()}};
  if (slot.live) json["endpoint"] = slot.live->endpoint;
  if (slot.left) json["left"] = true;
  if (const auto& lease = slot.record.lease) {
    json["lease"] = {{"name", lease->name}, {"server", lease->server}};
  }
  if (slot.clock_skew_ms) json["clock_skew_ms"] = *slot.clock_skew_ms;
  if (slot.past.empty()) return json;
  json["past_count"] = slot.past.size();
  json["past"] = Json::array();
  const size_t shown = std::min(slot.past.size(), kPastShown);
  for (size_t i = slot.past.size() - shown; i < slot.past.size(); ++i) {
    json["past"].push_back(HolderJson(slot.past[i]));
  }
  return json;
}

Json ServerJson(const AuditedProvider& server) {
  const auto& [provider, report] = server;
  Json json{{"address", provider.address},
            {"application", provider.application},
            {"state", AnnouncedPhase(report.phase)},
            {"bound_ms", report.bound.ms()},
            {"clock_skew_ms", report.clock_skew_ms},
            {"rack", provider.rack},
            {"tls", provider.tls},
            {"since_ms", provider.since.ms()},
            {"pid", provider.pid},
            {"build", provider.build}};
  if (report.machine) json["machine"] = report.machine->value();
  json["machines"] = Json::array();
  for (const auto& [machine, bound] : report.Held()) {
    json["machines"].push_back({{"machine", machine.value()}, {"bound_ms", bound.ms()}});
  }
  if (!report.reason.empty()) json["reason"] = report.reason;
  return json;
}

Json PaceJson(const AuditedPace& said) {
  Json json{{"over_ms", said.pace.over.count()},
            {"ids", said.pace.ids},
            {"calls", said.pace.calls},
            {"refused", said.pace.refused},
            {"age_ms", said.age.count()}};
  if (said.pace.p99_us) json["p99_us"] = *said.pace.p99_us;
  if (!said.pace.connections.empty()) json["connections"] = said.pace.connections;
  if (!said.pace.console.empty()) json["console"] = said.pace.console;
  if (!said.pace.history.samples.empty())
    json["history"] = *ParseJson(FormatHistory(said.pace.history), kPaceBytesMax);
  return json;
}

}  // namespace

Json FindingsJson(const std::vector<AuditFinding>& findings) {
  Json json = Json::array();
  for (const AuditFinding& finding : findings) {
    Json& shown =
        json.push_back(Json{{"urgency", UrgencyName(finding.urgency)}, {"what", finding.what}});
    if (!finding.fix.empty()) shown["fix"] = finding.fix;
  }
  return json;
}

Json AskedJson(const Audit& audit) {
  Json json = Json::array();
  for (const AskedServer& server : audit.asked) {
    Json& shown =
        json.push_back(Json{{"address", server.address}, {"answered", server.heard.ok()}});
    if (!server.heard.ok()) shown["why"] = server.heard.message();
  }
  return json;
}

Json AuditJson(const Audit& audit, bool unused_too, const std::string& restore_command) {
  Json json;
  if (audit.meta) {
    json["cluster"] = {{"uuid", audit.meta->uuid},           {"layout", audit.meta->layout},
                       {"floor_ms", audit.meta->floor.ms()}, {"frozen", audit.meta->frozen},
                       {"reason", audit.meta->reason},       {"version", audit.meta_version}};
  }
  json["machines"] = Json::array();
  for (const AuditedSlot& slot : audit.slots) {
    const bool unused = slot.use == SlotUse::kNeverUsed;
    if (unused_too || !unused) json["machines"].push_back(SlotJson(slot));
  }
  json["providers"] = Json::array();
  for (const AuditedProvider& server : audit.providers) {
    Json& shown = json["providers"].push_back(ServerJson(server));
    const auto pace = audit.paces.find(server.provider.address);
    if (pace != audit.paces.end()) shown["pace"] = PaceJson(pace->second);
  }
  for (const AuditedPartition& partition : audit.partitions) {
    Json& shown = json["partitions"].push_back(
        Json{{"partition", partition.partition}, {"tags", partition.tags}});
    if (partition.owner.empty()) continue;
    shown["owner"] = partition.owner;
    shown["since"] = FormatRfc3339(partition.since);
  }
  json["faults"] = audit.Faults();
  json["notes"] = audit.Notes();
  json["findings"] = FindingsJson(ByUrgency(audit.findings, restore_command));
  if (!audit.asked.empty()) json["asked"] = AskedJson(audit);
  if (!restore_command.empty()) json["restore"] = restore_command;
  return json;
}

Json TagJson(const TagDefinition& tag) {
  Json json{{"tag", tag.name}};
  for (const TagField& field : TagFields()) json[field.key] = FieldText(field, tag);
  for (const auto& [key, value] : tag.options) json[key] = value;
  json["high"] = std::to_string(tag.high);
  return json;
}

Json IssuersJson(const Issuers& issuers) {
  const Explanation& id = issuers.id;
  Json json{
      {"id", std::to_string(id.id)},          {"time", id.utc},          {"time_ms", id.time.ms()},
      {"machine", id.fields.machine.value()}, {"worker", id.worker},     {"rack", id.rack},
      {"known", !issuers.holders.empty()},    {"holders", Json::array()}};
  for (const PastHolder& holder : issuers.holders) {
    Json shown = HolderJson(holder);
    shown["present"] = issuers.present && &holder == &issuers.holders.back();
    json["holders"].push_back(std::move(shown));
  }
  if (!issuers.unknown.empty()) json["unknown"] = issuers.unknown;
  return json;
}

}  // namespace firn
