// Prints a few ids of one machine id, taken apart: what an id of this layout looks like.
//
//   firn_issue_demo [MACHINE [LAYOUT]]      the defaults are 5 and firn
//
// A demonstration only: nobody keeps the machine id for it, so a second run may give the same ids.

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>

#include "common/explain.h"
#include "common/rack_split.h"
#include "server/issue/patient_caller.h"
#include "server/issue/snowflake.h"

namespace firn {
namespace {

constexpr int64_t kShown = 4;
constexpr Milliseconds kHeld{60'000};
constexpr Milliseconds kPatience{5'000};

void Print(const Explanation& id) {
  std::printf("%-20lld %s  worker %u rack %u  sequence %llu\n", static_cast<long long>(id.id),
              id.utc.c_str(), id.worker, id.rack,
              static_cast<unsigned long long>(id.fields.sequence));
}

Status ShowIds(uint32_t machine, const Layout& layout) {
  const WallMs now = SystemClock().Wall();
  FIRN_TRY(layout.CheckCovers(now));
  IdClock id_clock;
  TickSource ticks(layout, id_clock, SystemClock());
  const auto snowflake = std::make_shared<Snowflake>(ticks, SystemEntropy());
  const auto claim = std::make_shared<Claim>(layout, MachineId(machine), now);
  claim->ExtendTo(now + kHeld);
  FIRN_TRY(snowflake->Adopt(claim));

  LoggingRejectionHandler rejections(SystemClock(),
                                     [](const std::string& line) { std::cerr << line << "\n"; });
  Issuer issuer(rejections);
  FIRN_TRY(issuer.Set({"order", snowflake, {}}));
  PatientCaller caller(issuer, SystemClock(), kPatience);
  IssueCall call(*issuer.Resolve("order"), {.tag = "order", .count = kShown});
  if (!caller.Issue(call)) return Unavailable(call.refusal().message);

  Status explained;
  call.runs().ForEach([&](int64_t id) {
    const Result<Explanation> explanation = Explain(id, layout, RackSplit::Default(layout));
    if (explanation.ok()) {
      Print(*explanation);
    } else {
      explained = explanation.status();
    }
  });
  return explained;
}

}  // namespace
}  // namespace firn

int main(int argc, char** argv) {
  const auto machine = static_cast<uint32_t>(argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 5);
  const auto layout = firn::Layout::Parse(argc > 2 ? argv[2] : "firn");
  const firn::Status shown = layout.ok() ? firn::ShowIds(machine, *layout) : layout.status();
  if (!shown.ok()) std::cerr << shown << "\n";
  return shown.ok() ? 0 : 2;
}
