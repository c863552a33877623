#include "tools/firn/restore_report.h"

#include <string>

#include "common/base/cat.h"
#include "common/time/civil_time.h"
#include "registry/claim/claim_checks.h"
#include "registry/claim/claim_options.h"
#include "registry/cluster/tag_store.h"
#include "tools/firn/flag_words.h"

namespace firn {

void TellDone(const RestoreReport& report, Output& output) {
  output.json["uuid"] = report.uuid;
  output.json["floor_ms"] = report.floor.ms();
  output.json["root_made"] = report.root_made;
  auto& retired = output.json["retired"] = Json::array();
  for (const Slot& slot : report.retired) {
    retired.push_back(SlotText(slot));
    output.text += "retired " + SlotText(slot) + "\n";
  }
  if (report.root_made) output.text += "tag " + std::string(kFirstTag) + " exists\n";
  output.json["mended"] = report.mended;
  for (const std::string& path : report.mended) output.text += "repaired " + path + "\n";
}

void WarnOfUnknown(const RestoreReport& report, bool lost, const std::string& default_strategy,
                   Output& output) {
  for (const Slot& slot : report.reserved_late) {
    output.wrong = true;
    output.text +=
        "WRONG: " + SlotText(slot) +
        " is reserved again, but a server claimed it in the meantime; compare its ids with those "
        "of the other system\n";
  }
  auto& unknown = output.json["unknown"] = Json::array();
  if (!report.root_made || !lost) return;
  const auto warn = [&](const char* flag, const char* consequence) {
    if (IsSaid(flag)) return;
    unknown.push_back(flag);
    output.text += Cat("WARNING: --", flag, " is not set: ", consequence, "\n");
  };
  warn("rack_bits", "the layout's default is used");
  warn("default_strategy", "undefined tags are refused");
  if (!default_strategy.empty()) {
    warn("ids_since", "segment and dated tags issue nothing until it is");
  }
  warn("reserve", "servers claim every machine id, including those that another system uses");
}

void TellKnown(const Audit& audit, size_t said, const RestoreReport& report, Output& output) {
  output.text += Cat("considered besides the registry's records: ", audit.providers.size(),
                     " running servers, ", said, " bounds from --bound_ms\n");
  output.json["servers"] = audit.providers.size();
  for (const auto& [provider, told] : audit.providers) {
    const Milliseconds skew = std::chrono::abs(Milliseconds(told.clock_skew_ms));
    if (skew <= kPoisonAhead) continue;
    output.wrong = true;
    output.text += Cat("WRONG: ", provider.address, " reports that its clock is off by ",
                       DurationText(skew), "; the floor ignores it\n");
  }
  auto& ignored = output.json["ignored_bounds_ms"] = Json::array();
  for (const auto& [bound, machine] : report.ignored) {
    output.wrong = true;
    ignored.push_back(bound.ms());
    output.text += Cat("WRONG: the bound ", FormatRfc3339(bound),
                       " is more than a day ahead, so the floor ignores it; ",
                       (machine ? Cat("machine id ", machine->value(), " is retired")
                                : "run the command again with --retire and its machine id"),
                       "\n");
  }
}

}  // namespace firn
