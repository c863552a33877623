#include <string>
#include <vector>

#include "registry/operate/upgrade.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/verbs/verbs.h"

namespace firn {
namespace {

Result<Output> RunUpgrade(const std::vector<std::string>& words) {
  if (!words.empty()) return Invalid("upgrade takes no arguments");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_ASSIGN(const UpgradeReport report, UpgradeCluster(session.registry()));
  const std::string to = std::to_string(report.to);
  const bool raised = report.from != report.to;
  return Output{.json = {{"from", report.from}, {"to", report.to}},
                .text = raised ? "the cluster uses format " + to +
                                     " from now on; servers claim "
                                     "their machine ids anew as their bounds pass\n"
                               : "the cluster uses format " + to + " already\n"};
}

}  // namespace

Verb UpgradeVerb() {
  return {.name = "upgrade",
          .summary = "has the cluster use what this version brings",
          .details =
              "Servers of two versions run side by side until then. Refused, with their names, "
              "while\nservers or programs live that would misread it.\n",
          .flags = {FIRN_REGISTRY_FLAGS},
          .run = RunUpgrade};
}

}  // namespace firn
