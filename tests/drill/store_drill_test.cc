// Tests whole servers whose segment tags use every kind of store, while ZooKeeper, the stores and
// the servers are killed.
//
//     FIRN_SOAK_SECONDS=60 FIRN_SOAK_THREADS=16 build/dev/bin/store_drill_test
//
// repeats the kills, with FIRN_SOAK_THREADS callers for each server. Without the variables, each is
// killed once.

#include <cstdio>
#include <string>
#include <vector>

#include "common/time/entropy.h"
#include "tests/drill/segment_cluster.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

constexpr int kServers = 4;

// One tag for each store. The last three have no buffer, so their numbers are fetched one by one
// and rise over all servers.
const std::vector<std::string> kTags{"plain", "table", "rows", "leaf",
                                     "hash",  "fast",  "near", "rising"};
constexpr const char* kTagsIni =
    "[plain]\nstrategy = segment\nstep = 50\nstore = registry\n"
    "[table]\nstrategy = segment\nstep = 50\nstore = main\n"
    "[rows]\nstrategy = segment\nstep = 50\nstore = elephant\n"
    "[leaf]\nstrategy = segment\nstep = 50\nstore = alloc\n"
    "[hash]\nstrategy = segment\nstep = 50\nstore = cache\n"
    "[fast]\nstrategy = segment\nstep = 50\nstore = tier\nbuffer = none\n"
    "[near]\nstrategy = segment\nstep = 50\nstore = near\nbuffer = none\n"
    "[rising]\nstrategy = segment\nstep = 50\nstore = registry\nbuffer = none\n";

class StoreDrill : public SegmentCluster {
 protected:
  enum Victim : uint64_t { kZooKeeper, kMariaDb, kPostgres, kRedis, kServer };

  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(StartStores());
    ASSERT_NO_FATAL_FAILURE(ApplyTags(kTagsIni));
    ASSERT_NO_FATAL_FAILURE(StartServers(kServers, {"--issue_wait_ms=1000"}));
  }

  void Kill(uint64_t victim) {
    ++kills_;
    switch (victim) {
      case kZooKeeper:
        ensemble().Kill(0);
        ASSERT_EQ(ensemble().Restart(0), Status());
        ASSERT_EQ(ensemble().AwaitReady(), Status());
        break;
      case kMariaDb:
        mariadb().Kill();
        ASSERT_EQ(mariadb().Restart(), Status());
        break;
      case kPostgres:
        postgres().Kill();
        ASSERT_EQ(postgres().Restart(), Status());
        break;
      case kRedis:
        redis().Kill();
        ASSERT_EQ(redis().Restart(), Status());  // empty: it does not persist
        break;
      default:
        RestartServer((victim - kServer) % kServers);
    }
    EXPECT_TRUE(GoOn(kTags)) << "after a kill of " << victim;
  }

  int64_t kills_ = 0;
};

TEST_F(StoreDrill, KilledStoresAndServersRepeatNoNumber) {
  const BootMs until = TestNow() + SoakTime(0);
  SCOPED_TRACE(SeedText(TestSeed()));
  SeededEntropy entropy(TestSeed());
  StartLoad({.tags = kTags,
             .threads = static_cast<int>(FromEnvironment("FIRN_SOAK_THREADS", 2)),
             .count = 3,
             .awkward = "table"});
  EXPECT_TRUE(GoOn(kTags)) << "after the faults";
  for (const Victim victim : {kZooKeeper, kMariaDb, kPostgres, kRedis, kServer}) Kill(victim);
  while (TestNow() < until && !HasFailure()) Kill(entropy.Below(kServer + kServers));
  int64_t refused = 0, broken = 0;
  for (const auto& [tag, counts] : StopLoad()) {
    refused += counts.refused;
    broken += counts.broken;
  }
  for (const char* const tag : {"plain", "table", "rows", "leaf", "hash"}) JudgeTag(tag);
  for (const char* const tag : {"fast", "near", "rising"}) JudgeRisingTag(tag);
  std::printf("drill of stores: %lld kills, %lld calls refused, %lld connections ended\n",
              static_cast<long long>(kills_), static_cast<long long>(refused),
              static_cast<long long>(broken));
}

}  // namespace
}  // namespace firn
