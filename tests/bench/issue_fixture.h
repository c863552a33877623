#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "common/id/id_clock.h"
#include "common/id/layout.h"
#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/issue/issuer.h"
#include "server/issue/snowflake/snowflake.h"
#include "server/issue/snowflake/snowflake_lanes.h"

namespace firn {

class NoRejections final : public RejectionHandler {
 public:
  void OnRefusal(const Request&, const Refusal&) override {}
};

// An issuer with one snowflake tag on the machine's clocks, and a claim that outlasts any
// benchmark.
struct IssueFixture {
  explicit IssueFixture(const Layout& layout, SnowflakeOptions options = {},
                        std::vector<std::shared_ptr<Plugin>> plugins = {})
      : ticks(layout, id_clock, SystemClock()),
        snowflake(std::make_shared<Snowflake>(ticks, SystemEntropy(), options)) {
    claim = std::make_shared<Claim>(layout, MachineId(7), SystemClock().Wall());
    claim->ExtendTo(SystemClock().Wall() + std::chrono::hours(24));
    if (!snowflake->Adopt(claim).ok()) Die("the benchmark's claim was refused");
    if (!issuer.Set({"order", snowflake, std::move(plugins)}).ok()) Die("no tag");
    tag = issuer.Resolve("order");
  }

  IdClock id_clock;
  TickSource ticks;
  std::shared_ptr<Claim> claim;
  std::shared_ptr<Snowflake> snowflake;
  NoRejections rejections;
  Issuer issuer{rejections};
  const Tag* tag = nullptr;
};

// An IssueFixture with several machine ids, whose sequences belong to one strategy.
struct LanesFixture {
  LanesFixture(const Layout& layout, uint32_t machines)
      : ticks(layout, id_clock, SystemClock()), lanes(MakeLanes(layout, machines)) {
    if (!issuer.Set({"order", lanes, {}}).ok()) Die("no tag");
    tag = issuer.Resolve("order");
  }

  std::shared_ptr<SnowflakeLanes> MakeLanes(const Layout& layout, uint32_t machines) {
    std::vector<std::shared_ptr<Snowflake>> made;
    for (uint32_t machine = 0; machine < machines; ++machine) {
      auto claim = std::make_shared<Claim>(layout, MachineId(machine), SystemClock().Wall());
      claim->ExtendTo(SystemClock().Wall() + std::chrono::hours(24));
      made.push_back(std::make_shared<Snowflake>(ticks, SystemEntropy()));
      if (!made.back()->Adopt(claim).ok()) Die("the benchmark's claim was refused");
    }
    return std::make_shared<SnowflakeLanes>(std::move(made));
  }

  IdClock id_clock;
  TickSource ticks;
  std::shared_ptr<SnowflakeLanes> lanes;
  NoRejections rejections;
  Issuer issuer{rejections};
  const Tag* tag = nullptr;
};

// With 20 sequence bits per millisecond, a billion ids per second fit, so the code is the limit.
// Batches need more bits.
inline Layout WideLayout() { return *Layout::Parse("time:39 machine:4 sequence:20"); }
inline Layout WidestLayout() { return *Layout::Parse("time:38 machine:3 sequence:22"); }

}  // namespace firn
