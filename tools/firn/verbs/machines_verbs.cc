#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <gflags/gflags.h>

#include "common/base/cat.h"
#include "common/base/parse.h"
#include "common/id/rack_split.h"
#include "common/time/clock.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/operate/audit.h"
#include "registry/operate/reserve.h"
#include "tools/firn/registry_session.h"
#include "tools/firn/table.h"
#include "tools/firn/verbs/verbs.h"

DEFINE_string(reserved_for, "another system",
              "Name of the system that uses the machine ids, as the audit shows it.");
DEFINE_int64(ahead_ms, 10'000,
             "Distance beyond now at which Firn's ids start, in milliseconds: more than any "
             "clock of the former system was ahead.");

namespace firn {
namespace {

using Words = std::vector<std::string>;

constexpr int64_t kAheadMost = 86'400'000;

// Parses one machine id ("5") or a range ("5-9").
Status AddMachines(const std::string& word, uint32_t most, std::vector<MachineId>& machines) {
  const size_t dash = std::min(word.find('-'), word.size());
  const auto first = ParseNumberWithin<uint32_t>(word.substr(0, dash), 0, most);
  const auto last =
      dash == word.size() ? first : ParseNumberWithin<uint32_t>(word.substr(dash + 1), 0, most);
  if (!first || !last || *last < *first) {
    return Invalid(Cat("'", word, "' is not a machine id of this cluster; use 0 to ", most,
                       ", or FIRST-LAST"));
  }
  for (uint32_t machine = *first; machine <= *last; ++machine) machines.emplace_back(machine);
  return {};
}

// The machine ids that the words name, and their slots.
struct Named {
  std::vector<MachineId> machines;
  std::vector<Slot> slots;
};

Result<Named> NamedIn(const Words& words, BlockingCoordinator& registry) {
  if (words.empty()) return Invalid("name at least one machine id");
  FIRN_ASSIGN(const MetaAsRead meta, ReadMeta(registry));
  FIRN_ASSIGN(const Layout layout, Layout::Parse(meta.meta.layout));
  FIRN_ASSIGN(const RackSplit split, RackSplit::Make(layout, meta.meta.rack_bits));
  const uint32_t most = split.workers() * split.racks() - 1;
  Named named;
  for (const std::string& word : words) FIRN_TRY(AddMachines(word, most, named.machines));
  std::ranges::sort(named.machines);
  const auto again = std::ranges::unique(named.machines);
  named.machines.erase(again.begin(), again.end());
  for (const MachineId machine : named.machines) {
    named.slots.push_back({split.RackOf(machine), split.WorkerOf(machine)});
  }
  return named;
}

Output Told(const Named& named, const char* what) {
  Output output{.json = {{"machines", Json::array()}}, .text = {}};
  for (const MachineId machine : named.machines) output.json["machines"].push_back(machine.value());
  output.text = Cat(named.machines.size(), " machine ids ", what, "\n");
  return output;
}

Result<Output> RunReserve(const Words& words) {
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_ASSIGN(const Named named, NamedIn(words, session.registry()));
  FIRN_TRY(ReserveSlots(session.registry(), named.slots, FLAGS_reserved_for));
  return Told(named, "are reserved; Firn does not claim them");
}

Result<Output> RunRelease(const Words& words) {
  if (FLAGS_ahead_ms < 0 || FLAGS_ahead_ms > kAheadMost) {
    return Invalid(Cat("--ahead_ms must be 0 to ", kAheadMost, " ms (24 h)"));
  }
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_ASSIGN(const Named named, NamedIn(words, session.registry()));
  FIRN_TRY(ReleaseSlots(session.registry(), named.slots, SystemClock().Wall(),
                        Milliseconds(FLAGS_ahead_ms)));
  return Told(named, "are released; Firn may claim them");
}

Result<Output> RunListMachines(const Words& words) {
  if (!words.empty()) return Invalid("machines list takes no arguments");
  FIRN_ASSIGN(RegistrySession session, RegistrySession::Open());
  FIRN_ASSIGN(const Audit audit, ReadAudit(session.registry(), SystemClock().Wall()));
  Table table({"MACHINE", "WORKER", "RACK", "USE", "OWNER"});
  Output output{.json = Json::array(), .text = {}};
  for (const AuditedSlot& slot : audit.slots) {
    if (slot.use == SlotUse::kNeverUsed) continue;
    const std::string use(SlotUseName(slot.use));
    table.Add({std::to_string(slot.machine.value()), std::to_string(slot.slot.worker),
               std::to_string(slot.slot.rack), use, slot.record.owner});
    output.json.push_back(
        {{"machine", slot.machine.value()}, {"use", use}, {"owner", slot.record.owner}});
  }
  output.text = table.Text();
  return output;
}

}  // namespace

Verb MachinesVerb() {
  Verb list{.name = "list",
            .summary = "lists machine ids that are or were in use, or are reserved",
            .flags = {FIRN_REGISTRY_FLAGS},
            .run = RunListMachines};
  Verb reserve{
      .name = "reserve",
      .arguments = "ID|FIRST-LAST...",
      .summary = "reserves machine ids for another system: Firn does not claim them",
      .details =
          "For a migration, before servers start. If Firn has ever held one of them, the command "
          "is refused\nand reserves none. A restore keeps the reservations that the registry or "
          "a document has.\n",
      .flags = {FIRN_REGISTRY_FLAGS, "reserved_for"},
      .run = RunReserve};
  Verb release{.name = "release",
               .arguments = "ID|FIRST-LAST...",
               .summary = "lets Firn claim reserved machine ids, after the other system stopped",
               .flags = {FIRN_REGISTRY_FLAGS, "ahead_ms"},
               .run = RunRelease};
  return {.name = "machines",
          .summary = "machine ids: list, reserve, release",
          .below = {std::move(list), std::move(reserve), std::move(release)}};
}

}  // namespace firn
