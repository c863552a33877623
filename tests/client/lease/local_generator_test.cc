#include "client/lease/local_generator.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "tests/client/lease/lessee_world.h"
#include "tests/support/in_child.h"

namespace firn {
namespace {

// A server in this process, which answers on separate threads.
class ServerHere final : public LeaseTransport {
 public:
  ~ServerHere() override {
    const std::lock_guard lock(mutex_);
    threads_.clear();
  }

  void Send(uint64_t number, const LeaseRequest& ask,
            std::shared_ptr<LeaseOutcomes> replies) override {
    if (silent) return;
    const std::lock_guard lock(mutex_);
    threads_.emplace_back([this, number, ask, replies] {
      LeaseOutcome reply;
      {
        const std::lock_guard answering(answering_);
        server_.Expire(SystemClock().Wall());
        reply = server_.Answer(ask, SystemClock().Wall());
      }
      replies->Post(number, std::move(reply));
    });
  }

  size_t leases() {
    const std::lock_guard lock(answering_);
    return server_.leases();
  }

  std::atomic<bool> silent{false};

 private:
  std::mutex mutex_;
  std::mutex answering_;
  SeededEntropy entropy_{11};
  LeaseServerModel server_{LeaseFault::kNone, entropy_};  // under answering_
  std::vector<std::jthread> threads_;                     // under mutex_
};

TEST(LocalGeneratorTest, IssuesRisingIdsAndReleasesTheLease) {
  const auto server = std::make_shared<ServerHere>();
  {
    LocalGenerator generator({.name = "a test"}, server);
    ASSERT_EQ(generator.AwaitLease(Milliseconds(20'000)), Status());
    EXPECT_EQ(server->leases(), 1u);
    EXPECT_TRUE(generator.machine_id().has_value());
    EXPECT_GT(generator.until()->ms(), SystemClock().Wall().ms());
    int64_t last = 0;
    for (int i = 0; i < 20'000; ++i) {
      const Result<int64_t> id = generator.Next();
      ASSERT_TRUE(id.ok()) << id.status();
      ASSERT_GT(id.value_or(0), last);
      last = id.value_or(0);
    }
  }
  EXPECT_EQ(server->leases(), 0u);
}

TEST(LocalGeneratorTest, SaysWhyThereIsNoLease) {
  const auto server = std::make_shared<ServerHere>();
  server->silent = true;
  LocalGenerator generator({.name = "a test"}, server);
  EXPECT_EQ(generator.AwaitLease(Milliseconds(10)), Unavailable("no server has answered yet"));
  EXPECT_EQ(generator.Next().status(), Unavailable("no server has granted a lease yet"));
  EXPECT_FALSE(generator.machine_id().has_value());
  EXPECT_FALSE(generator.until().has_value());
}

TEST(LocalGeneratorTest, TwoGeneratorsShareNoId) {
  const auto server = std::make_shared<ServerHere>();
  LocalGenerator one({.name = "one"}, server);
  LocalGenerator two({.name = "two"}, server);
  ASSERT_EQ(one.AwaitLease(Milliseconds(20'000)), Status());
  ASSERT_EQ(two.AwaitLease(Milliseconds(20'000)), Status());
  std::set<int64_t> ids;
  for (int i = 0; i < 5'000; ++i) {
    EXPECT_TRUE(ids.insert(one.Next().value_or(0)).second);
    EXPECT_TRUE(ids.insert(two.Next().value_or(0)).second);
  }
}

TEST(LocalGeneratorTest, AChildOfForkGetsNoIdAndMayMakeItsOwnGenerator) {
  const auto server = std::make_shared<ServerHere>();
  auto generator = std::make_unique<LocalGenerator>(LeaseOptions{.name = "a parent"}, server);
  ASSERT_EQ(generator->AwaitLease(Milliseconds(20'000)), Status());
  EXPECT_EQ(InChild([&] {
              if (generator->Next().ok() || generator->TryNext().ok()) return 1;
              if (generator->machine_id() || generator->until()) return 2;
              if (generator->AwaitLease(Milliseconds(10)).ok()) return 3;
              generator.reset();
              return 0;
            }),
            0);
  EXPECT_TRUE(generator->Next().ok());
  EXPECT_EQ(server->leases(), 1u);
}

}  // namespace
}  // namespace firn
