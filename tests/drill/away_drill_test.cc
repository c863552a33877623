// Stops the databases of whole servers under a steady load. Measures which tags are served and for
// how long, which are refused, and how they recover.
//
//     FIRN_AWAY_SECONDS=1200 build/dev/bin/away_drill_test
//
// stops them for 20 minutes. Without the variable, they are stopped for seconds. Each test prints a
// table.

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/cat.h"
#include "tests/drill/segment_cluster.h"

namespace firn {
namespace {

using Tags = std::vector<std::string>;

class AwayDrill : public SegmentCluster {
 protected:
  static constexpr size_t kServers = 2;
  static constexpr int64_t kRateMost = 10;  // maximum numbers per second of a tag on a server
  static constexpr Milliseconds kPause{20};

  // Results of a tag's calls since the stores were stopped.
  struct Seen {
    CallCounts away{}, back{};
    Milliseconds last_answer{0};                // after the stores were stopped
    std::optional<Milliseconds> first_after{};  // first answer after the stores were restarted
  };

  void SetUp() override { ASSERT_NO_FATAL_FAILURE(StartStores()); }

  static Milliseconds Lasts() {
    return Milliseconds(1000 * FromEnvironment("FIRN_AWAY_SECONDS", 2));
  }
  // Returns the step of server/store/AWAY.md for a somewhat longer outage than the intended one,
  // because the machine may be slow.
  static std::string Sized() {
    const int64_t seconds = std::max<int64_t>(Lasts().count() / 1000 + 60, 660);
    return Cat("step = ", kRateMost * seconds * 10 / 9, "\n");
  }
  static std::string Lines(const std::string& tag, const std::string& store,
                           const std::string& more) {
    return Cat("[", tag, "]\nstrategy = segment\nstore = ", store, "\n", more);
  }

  double Sum(const std::string& metric, const std::string& tag) {
    double sum = 0;
    for (size_t i = 0; i < kServers; ++i) sum += Metric(i, metric, tag);
    return sum;
  }
  bool StandIn(const Tags& tags, double servers) {
    return std::all_of(tags.begin(), tags.end(), [&](const std::string& tag) {
      return Sum("firn_segment_stands_in", tag) == servers;
    });
  }
  bool SaysThatItStandsIn(const std::string& tag) {
    return Firn({"tags", "show", tag}).out.find("unreachable since") != std::string::npos;
  }

  // Stops stores under load. The tags `ledgers` continue with their ledgers, the tags `dry` are
  // refused after some time, and the other tags in `all` continue with numbers in memory.
  template <typename Stop, typename Start>
  void Outage(const char* name, const Tags& all, const Tags& ledgers, const Tags& dry, Stop stop,
              Start start) {
    ASSERT_NO_FATAL_FAILURE(StartServers(kServers));
    StartLoad({.tags = all, .threads = 1, .pause = kPause});
    ASSERT_TRUE(GoOn(all, 50)) << "before the outage";
    TakeCounts();
    std::map<std::string, Seen> seen;
    stop();
    const BootMs stopped = TestNow();
    EXPECT_TRUE(Eventually(Lasts() + kPatience, [&] {
      Watch(stopped, seen);
      return TestNow() - stopped >= Lasts() && StandIn(ledgers, kServers) && AreDry(dry, seen);
    })) << "no call showed the outage";
    for (const std::string& tag : ledgers) EXPECT_TRUE(SaysThatItStandsIn(tag)) << tag;
    Watch(stopped, seen);
    start();
    const BootMs started = TestNow();
    EXPECT_TRUE(Eventually(kPatience, [&] {
      WatchAfter(started, all, seen);
      return StandIn(ledgers, 0) && AreBack(all, seen);
    })) << "the stores are back, but not used";
    for (const std::string& tag : ledgers) EXPECT_FALSE(SaysThatItStandsIn(tag)) << tag;
    EXPECT_TRUE(GoOn(all));
    StopLoad();
    Report(name, all, dry, started - stopped, seen);
  }

  static bool AreDry(const Tags& dry, std::map<std::string, Seen>& seen) {
    return std::all_of(dry.begin(), dry.end(),
                       [&](const std::string& tag) { return seen[tag].away.refused > 0; });
  }
  static bool AreBack(const Tags& all, std::map<std::string, Seen>& seen) {
    return std::all_of(all.begin(), all.end(),
                       [&](const std::string& tag) { return seen[tag].first_after.has_value(); });
  }

  void Watch(BootMs stopped, std::map<std::string, Seen>& seen) {
    for (const auto& [tag, counts] : TakeCounts()) {
      seen[tag].away += counts;
      if (counts.answered > 0) seen[tag].last_answer = TestNow() - stopped;
    }
  }
  void WatchAfter(BootMs started, const Tags& all, std::map<std::string, Seen>& seen) {
    std::map<std::string, CallCounts> counts = TakeCounts();
    for (const std::string& tag : all) {
      seen[tag].back += counts[tag];
      if (counts[tag].answered == 0 || seen[tag].first_after) continue;
      seen[tag].first_after = TestNow() - started;
    }
  }

  void Report(const char* name, const Tags& all, const Tags& dry, Milliseconds lasted,
              const std::map<std::string, Seen>& seen) {
    std::printf("\ndrill of databases that are away: %s, stopped for %.1f s\n\n", name,
                static_cast<double>(lasted.count()) / 1000);
    std::printf(
        "| tag | answered | refused | served for | by the ledger | first answer after | skipped |"
        " wasted, counted |\n|---|---|---|---|---|---|---|---|\n");
    for (const std::string& tag : all) {
      const Seen& of_tag = seen.at(tag);
      const bool is_dry = std::find(dry.begin(), dry.end(), tag) != dry.end();
      EXPECT_TRUE(is_dry || of_tag.away.refused == 0) << tag << ": " << of_tag.away.last_trouble;
      const std::string served =
          of_tag.away.refused == 0 ? "all of it" : Cat(of_tag.last_answer.count(), " ms");
      std::printf("| %s | %lld | %lld | %s | %.0f | %lld ms | %lld | %.0f |\n", tag.c_str(),
                  static_cast<long long>(of_tag.away.answered),
                  static_cast<long long>(of_tag.away.refused), served.c_str(),
                  Sum("firn_segment_stood_in_total", tag),
                  static_cast<long long>(of_tag.first_after.value_or(Milliseconds(-1)).count()),
                  static_cast<long long>(Skipped(tag)), Sum("firn_segment_wasted_total", tag));
    }
    std::printf("\n");
    for (const std::string& tag : all) JudgeTag(tag);
  }

  // Returns the count of numbers below the ledger that no caller got and no server has in memory.
  int64_t Skipped(const std::string& tag) {
    const auto supply = static_cast<int64_t>(Sum("firn_segment_supply", tag));
    return LedgerOf(tag) - 1 - takings(tag).Judge().ids - supply;
  }

  // Checks the number of skipped numbers, which the servers also count. A range whose answer was
  // lost may have been taken from a store, so each failure permits one such range.
  void JudgeWaste(const std::string& tag, int64_t step) {
    const double failures = Sum("firn_segment_failures_total", tag);
    EXPECT_LE(static_cast<double>(Skipped(tag)),
              Sum("firn_segment_wasted_total", tag) + failures * static_cast<double>(step))
        << tag;
  }
};

constexpr const char* kSmall = "step = 10\nstep_max = 10\n";
constexpr const char* kByLedger = "step = 60\nstep_max = 60\nwhen_store_is_away = ledger\n";

TEST_F(AwayDrill, ServesThroughStoppedDatabases) {
  ASSERT_NO_FATAL_FAILURE(ApplyTags(
      Lines("table by ledger", "main", kByLedger) + Lines("rows by ledger", "elephant", kByLedger) +
      Lines("table sized", "main", Sized()) + Lines("rows sized", "elephant", Sized()) +
      Lines("table small", "main", kSmall) + Lines("rows small", "elephant", kSmall)));
  const Tags ledgers{"table by ledger", "rows by ledger"}, dry{"table small", "rows small"};
  Outage(
      "MariaDB and PostgreSQL",
      {ledgers[0], ledgers[1], "table sized", "rows sized", dry[0], dry[1]}, ledgers, dry,
      [&] {
        mariadb().Kill();
        postgres().Kill();
      },
      [&] {
        EXPECT_EQ(mariadb().Restart(), Status());
        EXPECT_EQ(postgres().Restart(), Status());
      });
  for (const std::string& tag : dry) JudgeWaste(tag, 10);
  for (const std::string& tag : ledgers) JudgeWaste(tag, 60);
}

TEST_F(AwayDrill, ServesThroughAStoppedRedisAndItsDurableStore) {
  const std::string none = "buffer = none\n";
  ASSERT_NO_FATAL_FAILURE(ApplyTags(
      Lines("tier sized", "tier", Sized()) + Lines("tier small", "tier", kSmall) +
      Lines("tier one by one", "tier", none) + Lines("near one by one", "near", none) +
      Lines("hash small", "cache", kSmall) + Lines("table by ledger", "main", kByLedger)));
  const Tags dry{"tier small", "tier one by one", "near one by one", "hash small"};
  Outage(
      "Redis and MariaDB", {"table by ledger", "tier sized", dry[0], dry[1], dry[2], dry[3]},
      {"table by ledger"}, dry,
      [&] {
        redis().Kill();
        mariadb().Kill();
      },
      [&] {
        EXPECT_EQ(redis().Restart(), Status());
        EXPECT_EQ(mariadb().Restart(), Status());
      });
  JudgeWaste("table by ledger", 60);
}

}  // namespace
}  // namespace firn
