// Checks that the fast path and a reused call object allocate no memory.

#include <gtest/gtest.h>

#include "server/issue/issuer.h"
#include "tests/server/issue/plugin_rig.h"
#include "tests/server/issue/snowflake/snowflake_rig.h"
#include "tests/support/allocations.h"

namespace firn {
namespace {

class NoAllocation : public testing::Test {
 protected:
  NoAllocation() {
    rig_.Hold();
    EXPECT_EQ(issuer_.Set({"order", rig_.strategy(), {}}), Status());
  }

  template <typename F>
  int64_t AllocationsOf(F&& f) {
    const int64_t before = Allocations();
    for (int i = 0; i < 100; ++i) f();
    return Allocations() - before;
  }

  SnowflakeRig rig_;
  RecordingRejections rejections_;
  Issuer issuer_{rejections_};
};

TEST_F(NoAllocation, ForOneIdByName) {
  EXPECT_GT(AllocationsOf([] { ::operator delete(::operator new(1)); }), 0)
      << "the allocation counter does not work";
  const auto one = [&] {
    int64_t id = 0;
    issuer_.TryOne(*issuer_.Resolve("order"), Method::kThrift, &id);
  };
  EXPECT_EQ(AllocationsOf(one), 0);
}

TEST_F(NoAllocation, ForABatchInAReusedCall) {
  IssueCall call;
  const auto batch = [&] {
    call.Begin(*issuer_.Resolve("order"), {.tag = "order", .count = 20});
    issuer_.Issue(call);
  };
  EXPECT_EQ(AllocationsOf(batch), 0);
}

}  // namespace
}  // namespace firn
