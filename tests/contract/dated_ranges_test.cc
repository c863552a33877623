// Ranges of dated tags on each kind of registry: ledgers of several servers at once, the registry's
// time, and ranges that are returned at a stop.

#include <algorithm>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/registry_clock.h"
#include "registry/cluster/tag_store.h"
#include "registry/open/open_coordinator.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/seam/control_loop.h"
#include "server/store/dated_source.h"
#include "tests/support/process.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

using Connect = std::function<std::unique_ptr<Coordinator>()>;

// Ledger and source of one server, with a separate session and control thread.
class DatedServer {
 public:
  explicit DatedServer(const Connect& connect)
      : loop_(SystemClock(), connect()), ledger_(loop_.coordinator(), LedgerHooks{}) {
    loop_.Start([this](Now now) { ledger_.Tick(now.boot); });
  }
  ~DatedServer() { loop_.Stop(); }

  // Retries until there is a session and no other server was faster.
  Range Take(const TagDefinition& tag, int64_t size) {
    const BootMs give_up = SystemClock().Boot() + kPatience;
    for (;;) {
      auto told = std::make_shared<std::promise<Result<Range>>>();
      source_.Take(tag, size, [told](Result<Range> range) { told->set_value(range); });
      const Result<Range> range = told->get_future().get();
      if (range.ok() || SystemClock().Boot() >= give_up) {
        EXPECT_TRUE(range.ok()) << range.status();
        return range.value_or({});
      }
      SleepFor(Milliseconds(20));
    }
  }
  Status GiveBack(const TagDefinition& tag, Range tail) {
    auto told = std::make_shared<std::promise<Status>>();
    source_.GiveBack(tag, tail, [told](const Status& status) { told->set_value(status); });
    return told->get_future().get();
  }

  const RegistryTime& time() const { return time_; }

 private:
  ControlLoop loop_;
  RegistryTime time_;
  Ledger ledger_;
  DatedSource source_{loop_.coordinator(), ledger_,
                      [this](std::function<void()> task) { loop_.Post(std::move(task)); },
                      SystemClock(), time_};
};

struct Kind {
  std::string name;
  std::function<Connect()> open;  // its resources live as long as the Connect
};

class DatedRanges : public testing::TestWithParam<Kind> {
 protected:
  DatedRanges() : connect_(GetParam().open()), coordinator_(connect_()) {
    EXPECT_TRUE(registry_.Connect(kPatience).ok());
    EXPECT_TRUE(registry_.PrepareRoot().ok());
    EXPECT_TRUE(MakeCluster(registry_, {.workers = 1}, SystemEntropy()).ok());
    order_.step = 7;
    order_.zone = "Pacific/Auckland";
    const Status made = TagStore(registry_).Create(order_);
    EXPECT_TRUE(made.ok()) << made;
  }

  int64_t Today() {
    const WallMs now = ReadRegistryClock(registry_).value();
    return order_.Dated()->PeriodAt(now, TimeZone::Load(order_.zone).value());
  }

  const Connect connect_;
  const std::unique_ptr<Coordinator> coordinator_;
  BlockingCoordinator registry_{*coordinator_, SystemClock()};
  TagDefinition order_{.name = "order", .strategy = "dated"};
};

TEST_P(DatedRanges, ServersTakeTurnsUnderTheRegistrysDate) {
  const int64_t before = Today();
  std::vector<std::vector<Range>> taken(4);
  std::vector<std::thread> threads;
  for (std::vector<Range>& mine : taken) {
    threads.emplace_back([this, &mine] {
      DatedServer server(connect_);
      for (int i = 0; i < 25; ++i) mine.push_back(server.Take(order_, 1 + i % 9));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Range> all;
  for (const auto& mine : taken) {
    EXPECT_TRUE(std::is_sorted(mine.begin(), mine.end(),
                               [](Range a, Range b) { return a.end <= b.begin && !b.empty(); }));
    all.insert(all.end(), mine.begin(), mine.end());
  }
  std::sort(all.begin(), all.end(), [](Range a, Range b) { return a.begin < b.begin; });
  const DatedNumbers numbers = *order_.Dated();
  const int64_t after = Today();
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t period = numbers.PeriodOf(all[i].begin);
    EXPECT_TRUE(period == before || period == after) << all[i];
    EXPECT_EQ(numbers.PeriodOf(all[i].end - 1), period) << all[i];
    if (i > 0 && period == numbers.PeriodOf(all[i - 1].begin)) {
      EXPECT_EQ(all[i].begin, all[i - 1].end);
    }
  }
  EXPECT_EQ(numbers.CountOf(all.front().begin), 1);
}

TEST_P(DatedRanges, ReturnsATailThatIsTheLastRange) {
  DatedServer server(connect_);
  const Range first = server.Take(order_, 7);
  const Range tail{first.begin + 3, first.end};
  EXPECT_TRUE(server.GiveBack(order_, tail).ok());
  const Range next = server.Take(order_, 7);
  if (order_.Dated()->PeriodOf(next.begin) == order_.Dated()->PeriodOf(first.begin)) {
    EXPECT_EQ(next.begin, tail.begin);
  }
  EXPECT_EQ(server.GiveBack(order_, tail).code(), Code::kConflict);
}

TEST_P(DatedRanges, ReportsTheRegistrysTime) {
  DatedServer server(connect_);
  server.Take(order_, 1);
  const std::optional<WallMs> told = server.time().At(SystemClock().Boot());
  ASSERT_TRUE(told.has_value());
  const WallMs shown = ReadRegistryClock(registry_).value();
  EXPECT_LE(std::chrono::abs(shown - *told), kPatience);
}

TEST_P(DatedRanges, TheNextRangeUsesAnEditedTimeZone) {
  DatedServer server(connect_);
  const DatedNumbers numbers = *order_.Dated();
  const Range first = server.Take(order_, 1);
  TagStore store(registry_);
  TagDefinition west = order_;
  west.zone = "Pacific/Pago_Pago";  // where it is always the day before, or the same
  ASSERT_TRUE(store.Edit(*store.Read("order"), west).ok());
  const Range next = server.Take(order_, 1);
  EXPECT_GE(numbers.PeriodOf(next.begin), numbers.PeriodOf(first.begin));
  EXPECT_GE(next.begin, first.end);
}

Connect OnMemory() {
  const auto tree = std::make_shared<MemoryTree>(SystemClock());
  return [tree] { return std::make_unique<MemoryCoordinator>(*tree); };
}

Connect OnPlace(const std::string& place, std::shared_ptr<void> owned) {
  return [place, owned = std::move(owned)] {
    const OpenOptions options{.session_time = Milliseconds(20'000),
                              .time_limit = Milliseconds(15'000)};
    auto opened = OpenCoordinator(place, options, SystemClock(), SystemEntropy());
    if (!opened.ok()) Die(opened.status().ToString());
    return *std::move(opened);
  };
}

Connect OnDirectory() {
  const auto folder = std::make_shared<TempDir>();
  return OnPlace("dir://" + (*folder / "registry"), folder);
}

Connect OnZooKeeper() {
  auto started = ZooKeeper::Start();
  if (!started.ok()) Die(started.status().ToString());
  const std::shared_ptr<ZooKeeper> zookeeper = *std::move(started);
  return OnPlace("zk://" + zookeeper->hosts() + "/firn/dated", zookeeper);
}

INSTANTIATE_TEST_SUITE_P(Registries, DatedRanges,
                         testing::Values(Kind{"memory", OnMemory}, Kind{"directory", OnDirectory},
                                         Kind{"zookeeper", OnZooKeeper}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace firn
