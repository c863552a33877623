// Makes the stores of whole servers unreachable under a steady load, and tests bursts of calls.
//
//     FIRN_SOAK_SECONDS=60 build/dev/bin/outage_drill_test
//
// sets the duration of each outage. Without the variable, an outage lasts seconds.

#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "tests/drill/segment_cluster.h"

namespace firn {
namespace {

// Tags with numbers in memory, one for each kind of store. Each store also has a tag that never has
// more than twenty numbers in memory.
const std::vector<std::string> kSupplied{"plain", "table", "rows", "leaf", "hash", "tier"};

std::string TagLines(const std::string& tag, const std::string& store, const std::string& more) {
  return "[" + tag + "]\nstrategy = segment\nstore = " + store + "\n" + more;
}

class OutageDrill : public SegmentCluster {
 protected:
  static constexpr size_t kServers = 2;

  void SetUp() override { ASSERT_NO_FATAL_FAILURE(StartStores()); }

  // Returns a steady load of these tags.
  static Load Steady(std::vector<std::string> tags) {
    return {.tags = std::move(tags), .threads = 2, .pause = Milliseconds(5)};
  }

  // Lets callers take numbers at full speed until steps have grown, as they normally do over hours.
  // Then lets other callers call at intervals, because calls cause the next fetch, until each
  // server has a whole range in memory.
  void GrowSupply(int64_t step) {
    StartLoad({.tags = kSupplied, .threads = 2, .count = 200, .pause = Milliseconds(0)});
    for (const std::string& tag : kSupplied) EXPECT_TRUE(Reaches(tag, "firn_segment_step", step));
    StopLoad();
    StartLoad(Steady(kSupplied));
    for (const std::string& tag : kSupplied) EXPECT_TRUE(Reaches(tag, "firn_segment_supply", step));
    StopLoad();
  }

  // Waits until the metric of the tag is at least `least` on every server.
  testing::AssertionResult Reaches(const std::string& tag, const std::string& metric,
                                   int64_t least) {
    for (size_t i = 0; i < kServers; ++i) {
      const auto there = [&] { return Metric(i, metric, tag) >= static_cast<double>(least); };
      if (Eventually(kPatience, there)) continue;
      return testing::AssertionFailure()
             << metric << " of " << tag << " is " << Metric(i, metric, tag) << ", not " << least
             << "; a call's last trouble: " << TakeCounts()[tag].last_trouble
             << servers()[i]->log();
    }
    return testing::AssertionSuccess();
  }

  // Loads a first range of `tag` on every server, and no second one.
  void FetchOnce(const std::string& tag) {
    StartLoad({.tags = {tag}, .pause = Milliseconds(5)});
    EXPECT_TRUE(Reaches(tag, "firn_segment_supply", 1));
    StopLoad();
  }
  bool AllFail(const std::string& tag) {
    for (size_t i = 0; i < kServers; ++i) {
      if (Metric(i, "firn_segment_store_away", tag) != 1) return false;
    }
    return true;
  }

  // Stops a store under load for `lasts`. Two of its tags show the outage: `poor` has no supply and
  // is the only one refused; `late` has one range in memory, detects that it cannot fetch the next
  // one, and is still served.
  template <typename Away, typename Back>
  void Outage(const char* name, const std::string& of, Milliseconds lasts, Away away, Back back) {
    const std::string poor = "poor " + of, late = "late " + of;
    FetchOnce(late);
    StartLoad({.tags = {poor}, .count = 5, .pause = Milliseconds(5)});
    StartLoad(Steady(kSupplied));
    Load snowflakes = Steady({"default"});  // the machine id's bound must last, too
    snowflakes.awkward = "default";
    StartLoad(snowflakes);
    ASSERT_TRUE(GoOn({poor, "plain", "default"})) << "before the outage";
    TakeCounts();
    away();
    StartLoad({.tags = {late}, .count = 500, .pause = Milliseconds(5)});
    const BootMs end = TestNow() + lasts;
    std::map<std::string, CallCounts> counts;
    const auto count = [&] {
      for (const auto& [tag, more] : TakeCounts()) counts[tag] += more;
    };
    const auto noticed = [&] {
      count();
      return counts[poor].refused > 0 && AllFail(late) && TestNow() >= end;
    };
    EXPECT_TRUE(Eventually(lasts + kPatience, noticed)) << "no call showed the outage";
    EXPECT_TRUE(GoOn({late, "default"}));
    EXPECT_TRUE(GoOn(kSupplied));
    back();
    EXPECT_TRUE(GoOn({poor})) << "after the return of " << name;
    for (const auto& [tag, more] : StopLoad()) counts[tag] += more;
    Report(name, poor, counts);
  }

  // Returns whether the trouble is one of two effects of a busy machine. It may delay the thread
  // that writes the grant for longer than the 200 ms that are written ahead, for which a snowflake
  // tag waits. Or it may delay a server for the 50 ms that a call may wait. Then the awkward
  // readers have used up the tick in which the server resumes.
  static bool IsOfABusyMachine(const std::string& trouble) {
    return trouble.find("the grant file") != std::string::npos ||
           trouble.find("used up until the next tick") != std::string::npos;
  }

  void Report(const char* name, const std::string& poor,
              const std::map<std::string, CallCounts>& counts) {
    CallCounts others;
    for (const auto& [tag, of_tag] : counts) {
      if (tag == poor) continue;
      const bool kept_waiting = tag == "default" && IsOfABusyMachine(of_tag.last_trouble);
      EXPECT_TRUE(of_tag.refused == 0 || kept_waiting) << tag << ": " << of_tag.last_trouble;
      EXPECT_EQ(of_tag.broken, 0) << tag << ": " << of_tag.last_trouble;
      others += of_tag;
    }
    std::printf(
        "drill of outages: %s away: calls %lld, refused %lld, longest %lld ms; a tag without a "
        "supply: answered %lld, refused %lld\n",
        name, static_cast<long long>(others.answered), static_cast<long long>(others.refused),
        static_cast<long long>(others.longest.count()),
        static_cast<long long>(counts.at(poor).answered),
        static_cast<long long>(counts.at(poor).refused));
  }
};

TEST_F(OutageDrill, NumbersInMemoryHideOutagesOfStoresAndRegistry) {
  const Milliseconds lasts = SoakTime(1);
  const std::string poor = "step = 10\nstep_max = 10\n", rich = "step = 200\nhold_minutes = 5\n",
                    late = "step = 10000000\nstep_max = 10000000\nprefetch_at = 1\n";
  ASSERT_NO_FATAL_FAILURE(
      ApplyTags(TagLines("plain", "registry", rich) + TagLines("table", "main", rich) +
                TagLines("rows", "elephant", rich) + TagLines("leaf", "alloc", rich) +
                TagLines("hash", "cache", rich) + TagLines("tier", "tier", rich) +
                TagLines("poor plain", "registry", poor) + TagLines("poor table", "main", poor) +
                TagLines("poor rows", "elephant", poor) + TagLines("poor hash", "cache", poor) +
                TagLines("late plain", "registry", late) + TagLines("late table", "main", late) +
                TagLines("late rows", "elephant", late) + TagLines("late hash", "cache", late) +
                TagLines("poor tier", "tier", poor) + TagLines("late tier", "tier", late)));
  ASSERT_NO_FATAL_FAILURE(StartServers(kServers));
  // Two callers that pause for 5 ms take at most 400 numbers per second of all tags together. A
  // tiered tag is used in two outages and must have time to recover between them.
  const int64_t supply = 400 * (lasts.count() / 1000 + 5);
  GrowSupply(supply);
  Outage(
      "MariaDB", "table", lasts, [&] { mariadb().Kill(); },
      [&] { EXPECT_EQ(mariadb().Restart(), Status()); });
  GrowSupply(supply);
  Outage(
      "PostgreSQL", "rows", lasts, [&] { postgres().Kill(); },
      [&] { EXPECT_EQ(postgres().Restart(), Status()); });
  GrowSupply(supply);
  Outage(
      "Redis", "hash", lasts, [&] { redis().Kill(); },
      [&] { EXPECT_EQ(redis().Restart(), Status()); });
  GrowSupply(supply);
  Outage(
      "Redis and the MariaDB behind it", "tier", lasts,
      [&] {
        redis().Kill();
        mariadb().Kill();
      },
      [&] {
        EXPECT_EQ(redis().Restart(), Status());
        EXPECT_EQ(mariadb().Restart(), Status());
      });
  GrowSupply(supply);
  Outage(
      "ZooKeeper", "plain", lasts, [&] { ensemble().Kill(0); },
      [&] {
        EXPECT_EQ(ensemble().Restart(0), Status());
        EXPECT_EQ(ensemble().AwaitReady(), Status());
      });
  for (const std::string& tag : kSupplied) JudgeTag(tag);
}

// The step is ten, and calls take a hundred times as many numbers per second as before. A call that
// has to wait longer than --issue_wait_ms is refused. The default of 50 ms is for machines that
// only run the server.
TEST_F(OutageDrill, ABurstWaitsAndIsNotRefused) {
  const std::string ini = "step = 10\n";
  ASSERT_NO_FATAL_FAILURE(
      ApplyTags(TagLines("plain", "registry", ini) + TagLines("table", "main", ini) +
                TagLines("rows", "elephant", ini) + TagLines("leaf", "alloc", ini) +
                TagLines("hash", "cache", ini) + TagLines("tier", "tier", ini)));
  const int64_t wait_ms = FromEnvironment("FIRN_ISSUE_WAIT_MS", 30'000);
  ASSERT_NO_FATAL_FAILURE(StartServers(kServers, {"--issue_wait_ms=" + std::to_string(wait_ms)}));
  const auto phase = [&](const char* name, const Load& load) {
    StartLoad(load);
    EXPECT_TRUE(GoOn(kSupplied, 50));
    const BootMs end = TestNow() + SoakTime(0);
    while (TestNow() < end) EXPECT_TRUE(GoOn(kSupplied, 50));
    for (const auto& [tag, counts] : StopLoad()) {
      EXPECT_EQ(counts.refused, 0) << tag << ": " << counts.last_trouble;
      EXPECT_EQ(counts.broken, 0) << tag << ": " << counts.last_trouble;
      std::printf("drill of bursts: %s: %s: calls %lld, refused %lld, longest %lld ms\n", name,
                  tag.c_str(), static_cast<long long>(counts.answered),
                  static_cast<long long>(counts.refused),
                  static_cast<long long>(counts.longest.count()));
    }
  };
  const Load usual{.tags = kSupplied, .threads = 1, .count = 1, .pause = Milliseconds(10)};
  Load burst = usual;
  burst.threads = 10;
  burst.count = 10;
  phase("usual", usual);
  phase("burst", burst);
  for (const std::string& tag : kSupplied) JudgeTag(tag);
}

}  // namespace
}  // namespace firn
