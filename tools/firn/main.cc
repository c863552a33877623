#include "tools/firn/command.h"
#include "tools/firn/verbs/verbs.h"

int main(int argc, char** argv) {
  const firn::Verb root{
      .name = "firn",
      .summary = "64-bit ids that are never issued twice: the operator's command",
      .flags = {"version"},
      .below = {firn::NextVerb(), firn::ServersVerb(), firn::BenchVerb(), firn::DrillVerb(),
                firn::ExplainVerb(), firn::ComposeVerb(), firn::InitVerb(), firn::RestoreVerb(),
                firn::UpgradeVerb(), firn::AuditVerb(), firn::WhoVerb(), firn::RevealVerb(),
                firn::MachinesVerb(), firn::TagsVerb()}};
  return firn::RunCommand(root, FIRN_VERSION, argc, argv);
}
