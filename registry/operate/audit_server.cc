#include "registry/operate/audit_server.h"

#include <cstdlib>

#include "common/base/cat.h"
#include "common/base/printed_command.h"
#include "common/base/quote.h"

namespace firn {
namespace {

constexpr int64_t kSkewAlarmMs = 1'000;
// In this time after its start, a server that cannot issue yet is not a fault.
constexpr Milliseconds kStartPatience{5'000};

// A registry's clock that the server does not believe shows nothing about the server's own. Ids are
// ahead of a right clock after a restore, because of the floor, or after a step that they did not
// follow.
void JudgeClock(const AuditedProvider& server, Audit& audit) {
  const auto& [provider, report] = server;
  const int64_t wall = report.wall_skew_ms.value_or(report.clock_skew_ms);
  if (!report.clock_trouble.empty()) {
    audit.faults.push_back(Cat(provider.address, ": ", report.clock_trouble));
  } else if (std::abs(wall) > kSkewAlarmMs) {
    audit.faults.push_back(
        Cat(provider.address, ": its clock is off by ", wall, " ms; correct the clock"));
  } else if (std::abs(report.clock_skew_ms) > kSkewAlarmMs) {
    const bool restored = audit.meta && audit.meta->floor > WallMs();
    audit.notes.push_back(Cat(provider.address, ": its clock is right; its ids run ",
                              report.clock_skew_ms, " ms ahead of it, ",
                              (restored ? "because of the floor of the last firn restore or init"
                                        : "because the clock was set back"),
                              "; no action is needed"));
  }
}

// A foreign server cannot have a machine id here.
bool IsForeign(const AuditedProvider& server, const Audit& audit) {
  const ProviderReport& report = server.report;
  const bool ours = !audit.meta || report.cluster.empty() || report.cluster == audit.meta->uuid;
  return !ours && report.Held().empty();
}

void JudgeForeign(const AuditedProvider& server, Audit& audit) {
  const auto& [provider, report] = server;
  audit.faults.push_back(provider.address + " cannot claim: its state folder belongs to cluster " +
                         report.cluster + ", but this is cluster " + audit.meta->uuid +
                         "; give it an empty --state_dir, or, if this cluster replaced a lost one "
                         "by mistake, use the " +
                         PrintCommand(PrintedCommand::kRestore) +
                         " command that a server of the lost one printed");
}

void JudgeRefusals(const AuditedProvider& server, WallMs now, Audit& audit) {
  const auto& [provider, report] = server;
  const bool starts = now - provider.since < kStartPatience;
  if (starts || report.reason.empty()) return;
  if (report.phase == ServerPhase::kNotReady) {
    audit.faults.push_back(provider.address + " cannot issue: " + report.reason);
  } else if (report.phase == ServerPhase::kReady) {
    audit.faults.push_back(provider.address + " refuses some calls: " + report.reason);
  }
}

void JudgeTags(const AuditedProvider& server, Audit& audit) {
  const auto& [provider, report] = server;
  for (const auto& [tag, why] : report.refused) {
    audit.faults.push_back(Cat(provider.address, " refuses tag ", Quoted(tag), ": ", why));
  }
  for (const auto& [tag, why] : report.outdated) {
    audit.faults.push_back(
        Cat(provider.address, " serves an earlier definition of tag ", Quoted(tag), ": ", why));
  }
  if (report.refused_others == 0) return;
  audit.faults.push_back(Cat(provider.address, " refuses ", report.refused_others,
                             " more tags; its /v1/status lists them"));
}

}  // namespace

void JudgeServer(const AuditedProvider& server, WallMs now, Audit& audit) {
  JudgeClock(server, audit);
  JudgeTags(server, audit);
  if (IsForeign(server, audit)) return JudgeForeign(server, audit);
  JudgeRefusals(server, now, audit);
}

}  // namespace firn
