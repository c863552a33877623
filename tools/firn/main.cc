#include <cstdio>

#include "common/log/log.h"
#include "tools/firn/command.h"
#include "tools/firn/verbs/verbs.h"

namespace {

// Prints warnings and errors to stderr, such as a registry host that cannot be resolved.
void TellTroubles(const firn::LogEntry& entry) {
  if (entry.severity == firn::Severity::kInfo) return;
  std::fprintf(stderr, "firn: %s\n", entry.text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  firn::SendLogTo(TellTroubles);
  const firn::Verb root{
      .name = "firn",
      .summary = "64-bit ids that are never issued twice: the operator's command",
      .flags = {"version"},
      .below = {firn::NextVerb(), firn::ServersVerb(), firn::BenchVerb(), firn::DrillVerb(),
                firn::ExplainVerb(), firn::ComposeVerb(), firn::InitVerb(), firn::BackupVerb(),
                firn::RestoreVerb(), firn::UpgradeVerb(), firn::SetVerb(), firn::AuditVerb(),
                firn::DoctorVerb(), firn::WhoVerb(), firn::RevealVerb(), firn::MachinesVerb(),
                firn::TagsVerb()}};
  return firn::RunCommand(root, FIRN_VERSION, argc, argv);
}
