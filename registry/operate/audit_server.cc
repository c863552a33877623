#include "registry/operate/audit_server.h"

#include <chrono>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"
#include "common/json/json.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"

namespace firn {
namespace {

constexpr Milliseconds kCertificateUrgent = std::chrono::days(7);
constexpr Milliseconds kCertificateNotice = std::chrono::days(30);
constexpr char kAsItSays[] = "do as the reason says; its log and /readyz repeat it";
constexpr int64_t kSkewAlarmMs = 1'000;
// A server that cannot issue ids is not a fault for this time after its start, unless its reason
// will last.
constexpr Milliseconds kStartPatience{5'000};

// If the server does not trust the registry's clock, that clock proves nothing about the server's
// own. Ids are ahead of a correct clock after a restore, because of the floor, or after the clock
// was set back.
void JudgeClock(const AuditedProvider& server, Audit& audit) {
  const auto& [provider, report] = server;
  const int64_t wall = report.wall_skew_ms.value_or(report.clock_skew_ms);
  if (!report.clock_trouble.empty()) {
    audit.findings.push_back(
        {Urgency::kSoon, Cat(provider.address, ": ", report.clock_trouble),
         "correct the clock of ZooKeeper's leader, or of the host of a directory registry"});
  } else if (std::abs(wall) > kSkewAlarmMs) {
    audit.findings.push_back(
        {Urgency::kSoon,
         Cat(provider.address, ": its clock is off by ", wall, " ms; correct the clock"),
         "correct the clock of that host with NTP"});
  } else if (std::abs(report.clock_skew_ms) > kSkewAlarmMs) {
    const bool restored = audit.meta && audit.meta->floor > WallMs();
    audit.findings.push_back(
        {Urgency::kNote, Cat(provider.address, ": its clock is right; its ids run ",
                             report.clock_skew_ms, " ms ahead of it, ",
                             (restored ? "because of the floor of the last firn restore or init"
                                       : "because the clock was set back"),
                             "; no action is needed")});
  }
}

void JudgeGrant(const AuditedProvider& server, Audit& audit) {
  const auto& [provider, report] = server;
  if (report.grant_trouble.empty()) return;
  audit.findings.push_back({Urgency::kSoon, Cat(provider.address, ": ", report.grant_trouble),
                            "give its user a writable --grant_dir in memory, then restart it"});
}

// Either the server uses the wrong registry, or this cluster replaced a lost one by mistake. No
// other fault can be fixed before that is known, so this finding comes first.
void JudgeForeign(const AuditedProvider& server, Audit& audit) {
  const auto& [provider, report] = server;
  audit.findings.insert(
      audit.findings.begin(),
      {Urgency::kData,
       provider.address +
           (report.Held().empty() ? " cannot claim: its state folder belongs to cluster "
                                  : " holds a machine id of cluster ") +
           report.cluster + ", but this is cluster " + audit.meta->uuid +
           "; give it an empty --state_dir, or, if this cluster replaced a lost one by mistake, "
           "use the " +
           PrintCommand(PrintedCommand::kRestore) +
           " command that a server of the lost one printed",
       "correct that server's --registry, or run the " + PrintCommand(PrintedCommand::kRestore) +
           " command that it prints in its log"});
}

void JudgeRefusals(const AuditedProvider& server, WallMs now, Audit& audit) {
  const auto& [provider, report] = server;
  const bool lasts = report.reason.find(kKeptFault) != report.reason.npos;
  const bool starts = now - provider.since < kStartPatience && !lasts;
  if (starts || report.reason.empty()) return;
  if (report.phase == ServerPhase::kNotReady) {
    audit.findings.push_back(
        {Urgency::kRefused, provider.address + " cannot issue: " + report.reason, kAsItSays});
  } else if (report.phase == ServerPhase::kReady) {
    audit.findings.push_back(
        {Urgency::kRefused, provider.address + " refuses some calls: " + report.reason, kAsItSays});
  }
}

// Errors of a store end with a remedy if there is one.
std::string FixOfStore(std::string_view why) {
  return why.find("; ") != why.npos ? "do as the reason says; its /v1/status repeats it"
                                    : "bring the tag's store back";
}

// The fix of a refused tag follows from its state, the first word of the reason.
std::string FixOfTag(std::string_view why) {
  if (why.starts_with("unsupported")) {
    return "start that server with the missing flag, or change the definition: " +
           PrintCommand(PrintedCommand::kTagsSet);
  }
  return why.starts_with("no_numbers") ? FixOfStore(why) : std::string();
}

void JudgeTags(const AuditedProvider& server, Audit& audit) {
  const auto& [provider, report] = server;
  for (const auto& [tag, why] : report.refused) {
    std::string fix = FixOfTag(why);
    const bool restore = fix.empty();
    const bool lost = why.starts_with("lost");
    audit.findings.push_back({lost ? Urgency::kData : Urgency::kRefused,
                              Cat(provider.address, " refuses tag ", Quoted(tag), ": ", why),
                              std::move(fix), restore});
  }
  for (const auto& [tag, why] : report.outdated) {
    audit.findings.push_back(
        {Urgency::kSoon,
         Cat(provider.address, " serves an earlier definition of tag ", Quoted(tag), ": ", why),
         PrintCommand(PrintedCommand::kTagsSet, {tag, "buffer=double"})});
  }
  for (const auto& [tag, why] : report.unsupplied) {
    audit.findings.push_back(
        {Urgency::kSoon,
         Cat(provider.address, " gets no more numbers for tag ", Quoted(tag), ": ", why),
         FixOfStore(why)});
  }
  if (report.refused_others == 0) return;
  audit.findings.push_back({Urgency::kRefused,
                            Cat(provider.address, " refuses ", report.refused_others,
                                " more tags; its /v1/status lists them"),
                            "read its /v1/status"});
}

// "the TLS certificate of the public port", "an authority's certificate for clients of the admin
// port".
std::string CertificateText(const std::string& which) {
  const size_t space = which.find(' ');
  const std::string door = which.substr(0, space);
  return (space == which.npos ? "the TLS certificate of the "
                              : "a certificate of the client authorities of the ") +
         door + " port";
}

void JudgeCertificates(const AuditedProvider& server, WallMs now, Audit& audit) {
  for (const auto& [which, end] : server.report.certificates) {
    const Milliseconds left = end - now;
    if (left > kCertificateNotice) continue;
    const bool expired = left <= Milliseconds(0);
    Urgency urgency = left <= kCertificateUrgent ? Urgency::kSoon : Urgency::kNote;
    if (expired) urgency = Urgency::kRefused;
    audit.findings.push_back({urgency,
                              Cat(server.provider.address, ": ", CertificateText(which),
                                  expired ? " expired on " : " expires on ", FormatRfc3339(end)),
                              "install a new certificate, then reload the server (SIGHUP, or "
                              "systemctl reload firn-server)"});
  }
}

void JudgeLoad(const AuditedProvider& server, Audit& audit) {
  if (!server.report.overloaded) return;
  audit.findings.push_back(
      {Urgency::kRefused,
       server.provider.address + " refuses calls (OVERLOADED): over 1 % in the last 10 s",
       "add servers, or raise the tag's step; if the refusals name another "
       "cause, such as too many ids in one call, do what they say"});
}

void JudgeHistory(const AuditedProvider& server, Audit& audit) {
  if (!server.report.history_lost) return;
  audit.findings.push_back(
      {Urgency::kSoon, server.provider.address + " loses records of the plugin history",
       "make room for its --history_file; its log says why it cannot be written"});
}

// --- answers of servers -------------------------------------------------------------------------

using Reasons = std::map<std::string, std::string>;

// Stores the current reason of one tag; empty: the tag is not refused.
void SetReason(const std::string& tag, std::string why, Reasons& reasons) {
  reasons.erase(tag);
  if (!why.empty()) reasons.emplace(tag, std::move(why));
}

void TakeRefusedTags(const Json& status, ProviderReport& report) {
  const Json& list = status.at("refused_tags");
  const std::optional<int64_t> count = status.at("refused_tags_count").whole();
  if (!list.is_array() || !count) return;
  report.refused.clear();
  report.refused_others = *count - static_cast<int64_t>(list.size());
  for (const Json& one : list) {
    if (!one.is_object()) continue;
    const std::string state = one.at("state").text();
    if (state == "disabled") continue;  // the tag's definition says so
    report.refused.emplace(one.at("tag").text(), Cat(state, ": ", one.at("why").text()));
  }
}

void TakeServedTags(const Json& status, ProviderReport& report) {
  const Json& list = status.at("tags");
  if (!list.is_array()) return;
  for (const Json& one : list) {
    if (!one.is_object()) continue;
    const std::string tag = one.at("tag").text();
    SetReason(tag, one.at("outdated").text(), report.outdated);
    const bool refused = report.refused.contains(tag);
    SetReason(tag, refused ? std::string() : one.at("trouble").text(), report.unsupplied);
  }
}

void JudgeReload(const std::string& address, const Json& reload,
                 std::vector<AuditFinding>& findings) {
  if (!reload.is_object()) return;
  const Json& faults = reload.at("faults");
  if (!faults.is_array()) return;
  for (const Json& fault : faults) {
    if (!fault.is_string()) continue;
    findings.push_back({Urgency::kSoon,
                        Cat(address, ": its last reload, at ", reload.at("time").text(),
                            ", refused a file: ", fault.text()),
                        "correct the file, then reload the server (SIGHUP, or systemctl reload "
                        "firn-server)"});
  }
}

void JudgeConnection(const std::string& address, const Json& status,
                     std::vector<AuditFinding>& findings) {
  const Json& registry = status.at("registry");
  if (!registry.is_object() || registry.at("connected") != Json(false)) return;
  const std::string bound = status.at("bound").text();
  const std::string until = bound.empty() ? "" : Cat("; it issues ids until ", bound);
  findings.push_back({Urgency::kSoon,
                      Cat(address, " has lost its connection to the registry", until),
                      "check the network between that host and the registry; the server connects "
                      "again by itself"});
}

}  // namespace

bool IsForeign(const ProviderReport& report, const Audit& audit) {
  return audit.meta && !report.cluster.empty() && report.cluster != audit.meta->uuid;
}

void JudgeServer(const AuditedProvider& server, WallMs now, Audit& audit) {
  JudgeClock(server, audit);
  JudgeGrant(server, audit);
  JudgeTags(server, audit);
  JudgeCertificates(server, now, audit);
  JudgeLoad(server, audit);
  JudgeHistory(server, audit);
  if (IsForeign(server.report, audit)) return JudgeForeign(server, audit);
  JudgeRefusals(server, now, audit);
}

Status TakeStatus(std::string_view json, AuditedProvider& server,
                  std::vector<AuditFinding>& findings) {
  constexpr size_t kValuesMax = 200'000;
  FIRN_ASSIGN(const Json status, ParseJson(json, kStatusBytesMax, kValuesMax));
  const std::string& address = server.provider.address;
  if (const std::string answers = status.at("address").text(); answers != address) {
    return Invalid(Cat("another server answers there: ", Quoted(answers)));
  }
  TakeRefusedTags(status, server.report);
  TakeServedTags(status, server.report);
  const Json& overloaded = status.at("overloaded");
  if (overloaded.is_boolean()) server.report.overloaded = overloaded.boolean();
  JudgeReload(address, status.at("last_reload"), findings);
  JudgeConnection(address, status, findings);
  return {};
}

}  // namespace firn
