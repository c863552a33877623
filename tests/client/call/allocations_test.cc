// Counts the memory allocations of a call.

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

class LastSent final : public Sender {
 public:
  std::shared_ptr<const Connection> Send(RequestPtr request, size_t, const ServerPtr& to,
                                         bool) override {
    asked = request.get();
    server = to.get();
    return connection_;
  }
  Request* asked = nullptr;
  Server* server = nullptr;

 private:
  struct SilentConnection final : Connection {
    Outcome Silence() const override { return Outcome::Of(AttemptEnd::kTimeout); }
  };
  const std::shared_ptr<const Connection> connection_ = std::make_shared<SilentConnection>();
};

class AllocationsTest : public FleetTest {};

TEST_F(AllocationsTest, AnAnsweredCallAllocatesOnlyItsRecord) {
  Of({At(1), At(2), At(3)});
  JobQueue jobs;
  LastSent last;
  CallHost host{.jobs = jobs,
                .bells = std::make_shared<Bells>(),
                .fleet = *fleet_,
                .sender = last,
                .limits = {}};
  std::vector<JobPtr> ended;
  const auto call = [&] {
    auto one = std::make_shared<Call>(host, Ask{.tag = "order"}, Now() + Micros(200'000), nullptr,
                                      nullptr);
    jobs.SetNow(Now());
    jobs.Add(one);
    fleet_->Done(*last.server, "order", {}, Micros(100), Now());
    last.asked->settled = true;
    last.asked->OnOutcome(0, {}, /*last=*/true);
    jobs.Tick(Now());
    jobs.TakeEnded(ended);
    for (const JobPtr& job : ended) job->AfterEnd();
    ended.clear();
    host.bells->RingAll();
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
