#include <string>
#include <vector>

#include "common/base/cat.h"
#include "common/time/clock.h"
#include "registry/operate/audit.h"
#include "registry/operate/operator_json.h"
#include "registry/operate/restore_command.h"
#include "tools/firn/admin_ports.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/restore/restore_facts.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

std::string_view HeadingOf(Urgency urgency) {
  switch (urgency) {
    case Urgency::kData:
      return "NOW    ";
    case Urgency::kRefused:
      return "REFUSED";
    case Urgency::kSoon:
      return "SOON   ";
    case Urgency::kNote:
      break;
  }
  return "NOTE   ";
}

Exit ExitOf(Urgency worst) {
  switch (worst) {
    case Urgency::kData:
      return Exit::kBroken;
    case Urgency::kRefused:
      return Exit::kRefused;
    case Urgency::kSoon:
      return Exit::kWrong;
    case Urgency::kNote:
      break;
  }
  return Exit::kDone;
}

std::string TextOf(const AuditFinding& finding) {
  std::string text = Cat(HeadingOf(finding.urgency), "  ", finding.what, "\n");
  if (!finding.fix.empty()) text += "         fix: " + finding.fix + "\n";
  return text;
}

Output Tell(const std::vector<AuditFinding>& findings, const std::string& head) {
  const Urgency worst = findings.empty() ? Urgency::kNote : findings.front().urgency;
  Output output;
  output.json = {{"healthy", worst == Urgency::kNote}, {"findings", FindingsJson(findings)}};
  output.exit_code = static_cast<int>(ExitOf(worst));
  for (const AuditFinding& finding : findings) output.text += TextOf(finding);
  output.text += head;
  if (worst == Urgency::kNote) output.text += "nothing is wrong\n";
  return output;
}

// Returns the only finding if the registry cannot be read.
Output Unreachable(const Status& why) {
  Output output = Tell({{Urgency::kRefused, "the registry cannot be read: " + why.message(),
                         "bring " + ChosenRegistry() +
                             " back, or correct --registry and its credentials; servers issue ids "
                             "until their bounds"}},
                       "");
  output.exit_code = static_cast<int>(ExitFor(why.code()));
  return output;
}

Result<Output> RunDoctor(const std::vector<std::string>& words) {
  if (!words.empty()) return Invalid("doctor takes no arguments");
  Result<RegistrySession> session = RegistrySession::Open();
  if (session.code() == Code::kInvalid) return session.status();
  if (!session.ok()) return Unreachable(session.status());
  const Result<Audit> audit = ReadAudit(session->registry(), SystemClock().Wall(), AskAdminPorts);
  if (!audit.ok()) return Unreachable(audit.status());
  Output output =
      Tell(ByUrgency(audit->findings, RepairCommand(*audit, RestorePlace())),
           Cat(audit->providers.size(), " servers, ", audit->slots.size(), " machine ids, ",
               audit->tags.size(), " tags examined\n", AskedText(*audit)));
  output.json["asked"] = AskedJson(*audit);
  return output;
}

}  // namespace

Verb DoctorVerb() {
  return {.name = "doctor",
          .summary = "lists everything that is wrong, most urgent first, with its fix",
          .details =
              "Reads the registry, and the reports that servers publish there: refused tags,\n"
              "stores, clocks, certificates, lost history. Then it asks each server at its admin\n"
              "port, and lists those that gave no answer. The audit shows the same findings, and\n"
              "the console of each server those of the registry.\n"
              "  NOW      data were lost, or ids may be duplicated (exit code 6)\n"
              "  REFUSED  calls are refused (4; 3 if the registry cannot be reached)\n"
              "  SOON     calls will be refused, or records are lost (1)\n"
              "  NOTE     nothing is wrong (0)\n",
          .flags = {FIRN_REGISTRY_FLAGS, FIRN_ADMIN_FLAGS},
          .run = RunDoctor};
}

}  // namespace firn
