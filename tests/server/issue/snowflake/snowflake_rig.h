#pragma once

#include <memory>

#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "server/issue/snowflake/snowflake.h"
#include "tests/support/virtual_clock.h"

namespace firn {

// A snowflake strategy with a clock that the test moves, and claims for it.
class SnowflakeRig {
 public:
  explicit SnowflakeRig(const Layout& layout = Layout::Firn(), IdClockOptions clock_options = {},
                        SnowflakeOptions options = {})
      : layout_(layout),
        clock_(layout.epoch() + Milliseconds(1'000'000'000)),
        id_clock_(clock_options),
        ticks_(layout, id_clock_, clock_, /*use_cycles=*/false),
        snowflake_(std::make_shared<Snowflake>(ticks_, entropy_, options)) {}

  // Holds machine id `machine` from now until `length` later.
  std::shared_ptr<Claim> Hold(uint32_t machine = 7, Milliseconds length = Milliseconds(600'000)) {
    auto claim = std::make_shared<Claim>(layout_, MachineId(machine), clock_.Wall());
    claim->ExtendTo(clock_.Wall() + length);
    EXPECT_EQ(snowflake_->Adopt(claim), Status());
    return claim;
  }

  Verdict Ask(int64_t count) {
    call_.Begin({.count = count});
    return snowflake_->Issue(call_);
  }
  Verdict AskAgain() { return snowflake_->Issue(call_); }

  // Calls repeatedly, and lets time pass as the strategy says, until the call ends.
  Verdict AskPatiently(int64_t count) {
    Verdict verdict = Ask(count);
    for (int waits = 0; verdict == Verdict::kWait && waits < 1'000; ++waits) {
      clock_.Advance(std::chrono::ceil<Milliseconds>(call_.ask_again_in()));
      verdict = AskAgain();
    }
    return verdict;
  }

  // Returns the only id of a call for one, explained.
  IdFields One() {
    int64_t id = 0;
    EXPECT_TRUE(snowflake_->TryOne(Method::kEmbedded, &id));
    return layout_.Unpack(id).value();
  }

  Snowflake& snowflake() { return *snowflake_; }
  std::shared_ptr<Snowflake> strategy() { return snowflake_; }
  const IssueCall& call() const { return call_; }
  const Runs& runs() const { return call_.runs(); }
  const Refusal& refusal() const { return call_.refusal(); }
  VirtualClock& clock() { return clock_; }
  IdClock& id_clock() { return id_clock_; }
  TickSource& ticks() { return ticks_; }
  Tick now() const { return layout_.TickAt(clock_.Wall()); }

 private:
  const Layout layout_;
  VirtualClock clock_;
  IdClock id_clock_;
  TickSource ticks_;
  SeededEntropy entropy_{11};
  std::shared_ptr<Snowflake> snowflake_;
  IssueCall call_;
};

}  // namespace firn
