#include <gtest/gtest.h>

#include "server/pace_log.h"

namespace firn {
namespace {

// A server's counters since its start.
class PaceMeterTest : public testing::Test {
 protected:
  ServerPace Read(int64_t at_ms) { return meter_.Read(totals_, sums_, BootMs(at_ms)); }

  front::Totals totals_;
  front::DeskCounters::Sums sums_;
  PaceMeter meter_{BootMs(1'000)};
};

TEST_F(PaceMeterTest, ReportsTheActivitySinceTheLastReading) {
  sums_.issued = {{"a", 40}, {"b", 2}};
  sums_.calls = 10;
  sums_.refused[1] = 3;
  EXPECT_EQ(Read(6'000),
            (ServerPace{.over = Milliseconds(5'000), .ids = 42, .calls = 10, .refused = 3}));
  sums_.issued["b"] = 5;
  sums_.calls = 12;
  sums_.refused[2] = 1;
  EXPECT_EQ(Read(6'500),
            (ServerPace{.over = Milliseconds(500), .ids = 3, .calls = 2, .refused = 1}));
}

TEST_F(PaceMeterTest, APeekEndsNoReading) {
  sums_.issued = {{"a", 40}};
  const ServerPace peeked = meter_.Peek(totals_, sums_, BootMs(3'000));
  EXPECT_EQ(peeked, (ServerPace{.over = Milliseconds(2'000), .ids = 40}));
  sums_.issued["a"] = 50;
  EXPECT_EQ(Read(6'000), (ServerPace{.over = Milliseconds(5'000), .ids = 50}));
}

TEST_F(PaceMeterTest, OverloadIsTenCallsAndMoreThanAHundredthOfThePeriods) {
  uint64_t& overloaded = sums_.refused[static_cast<size_t>(Reason::kOverloaded)];
  EXPECT_FALSE(meter_.overloaded());
  sums_.calls = 1'000;
  overloaded = 10;
  Read(2'000);
  EXPECT_FALSE(meter_.overloaded()) << "a hundredth";
  sums_.calls = 2'000;
  overloaded = 21;
  EXPECT_EQ(meter_.Peek(totals_, sums_, BootMs(3'000)).calls, 1'000);
  EXPECT_FALSE(meter_.overloaded()) << "the period has not ended";
  Read(3'000);
  EXPECT_TRUE(meter_.overloaded());
  sums_.calls = 2'010;
  overloaded = 30;
  Read(3'500);
  EXPECT_FALSE(meter_.overloaded()) << "nine calls";
  sums_.calls = 2'110;
  sums_.refused[static_cast<size_t>(Reason::kClock)] = 100;
  Read(4'000);
  EXPECT_FALSE(meter_.overloaded()) << "refused for another reason";
  Read(5'000);
  EXPECT_FALSE(meter_.overloaded()) << "there were no calls";
}

TEST_F(PaceMeterTest, P99CoversNewRequestsOnlyAndIsMissingWithoutAny) {
  totals_.latency[front::ProtocolKind::kThrift].buckets[3] = 98;
  totals_.latency[front::ProtocolKind::kHttp].buckets[3] = 1;
  totals_.latency[front::ProtocolKind::kRedis].buckets[9] = 1;
  EXPECT_EQ(Read(2'000).p99_us, 8);
  totals_.latency[front::ProtocolKind::kThrift].buckets[9] += 1;
  EXPECT_EQ(Read(3'000).p99_us, 512);
  EXPECT_EQ(Read(4'000).p99_us, std::nullopt);
}

}  // namespace
}  // namespace firn
