// How often a call allocates memory.

#include "tests/support/allocations.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "client/call/call.h"
#include "tests/client/fleet/fleet_rig.h"

namespace firn::client {
namespace {

class LastSentHost final : public CallHost {
 public:
  using CallHost::CallHost;
  std::optional<PipelinePtr> Send(const CallPtr& call, size_t, const ServerPtr& to, bool) override {
    asked = call.get();
    server = to.get();
    return PipelinePtr();
  }
  Call* asked = nullptr;
  Server* server = nullptr;
};

class AllocationsTest : public FleetTest {};

TEST_F(AllocationsTest, AnAnsweredCallAllocatesItsRecordOnly) {
  Of({At(1), At(2), At(3)});
  JobQueue jobs;
  LastSentHost host(jobs, *fleet_, {});
  std::vector<JobPtr> ended;
  const auto call = [&] {
    auto one = std::make_shared<Call>(host, Ask{.tag = "order"}, Now() + Micros(200'000), nullptr,
                                      nullptr);
    jobs.SetNow(Now());
    jobs.Add(one);
    fleet_->Done(*host.server, "order", {}, Micros(100), Now());
    host.asked->settled = true;
    host.asked->OnOutcome(0, {}, /*last=*/true);
    jobs.Tick(Now());
    jobs.TakeEnded(ended);
    for (const JobPtr& job : ended) job->AfterEnd();
    ended.clear();
    one->AwaitEnd();
  };
  for (int i = 0; i < 10; ++i) call();
  const int64_t before = Allocations();
  constexpr int kCalls = 100;
  for (int i = 0; i < kCalls; ++i) call();
  EXPECT_EQ(Allocations() - before, kCalls);
}

}  // namespace
}  // namespace firn::client
