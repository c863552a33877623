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
                                     " from now on; servers claim machine "
                                     "ids again when their bounds pass\n"
                               : "the cluster already uses format " + to + "\n"};
}

}  // namespace

Verb UpgradeVerb() {
  return {.name = "upgrade",
          .summary = "enables the features of this version in the cluster",
          .details =
              "Until then, servers of two versions can run side by side. Refused while servers or\n"
              "programs run that would misread the new format; the error names them.\n",
          .flags = {FIRN_REGISTRY_FLAGS},
          .run = RunUpgrade};
}

}  // namespace firn
