#include "server/node/embedded.h"

#include <csignal>
#include <filesystem>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/json/json.h"
#include "common/text/dated_numbers.h"
#include "common/time/clock.h"
#include "tests/embedded/embedded_fixture.h"
#include "tests/support/json_of.h"
#include "tests/support/memory_store.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

// Programs of one host that share a directory registry.
class EmbeddedTest : public EmbeddedFixture {
 protected:
  // Returns the current and past holders of a machine id, as an audit shows them.
  std::set<std::string> Owners() {
    const Finished audit = RunFirn({"audit", "--json", "--registry=" + Options().registry});
    const auto json = JsonOf(audit.out);
    EXPECT_TRUE(json.is_object()) << audit.err;
    std::set<std::string> owners;
    for (const auto& machine : json.at("machines")) {
      owners.insert(machine.at("owner").text());
    }
    return owners;
  }

  // Whether the hint with the machine id is on disk. A separate thread writes it, after the claim.
  static bool HasHint(const std::string& state_dir) {
    for (const auto& file : std::filesystem::directory_iterator(state_dir)) {
      if (file.path().extension() == ".properties") return true;
    }
    return false;
  }

  // Takes one id in another process, which ends without releasing its machine id.
  static int64_t IdOfAProgramThatDies(const EmbeddedOptions& options) {
    int ends[2] = {-1, -1};
    EXPECT_EQ(pipe(ends), 0);
    const pid_t child = fork();
    if (child == 0) {
      const auto ids = Embedded::Open(options);
      int64_t id = ids.ok() ? (*ids)->Next().value_or(0) : 0;
      if (!Eventually(kPatience, [&] { return HasHint(options.state_dir); })) id = 0;
      static_cast<void>(write(ends[1], &id, sizeof id) == sizeof id);
      raise(SIGKILL);
    }
    close(ends[1]);
    int64_t id = 0;
    EXPECT_EQ(read(ends[0], &id, sizeof id), static_cast<ssize_t>(sizeof id));
    close(ends[0]);
    EXPECT_EQ(waitpid(child, nullptr, 0), child);
    return id;
  }
};

TEST_F(EmbeddedTest, IssuesRisingIds) {
  const auto ids = Open();
  int64_t last = 0;
  for (int i = 0; i < 10'000; ++i) {
    const Result<int64_t> id = ids->Next();
    ASSERT_TRUE(id.ok()) << id.status();
    ASSERT_GT(*id, last);
    last = *id;
  }
}

TEST_F(EmbeddedTest, TwoProgramsHaveTwoMachineIds) {
  const auto one = Open(1);
  const auto two = Open(2);
  EXPECT_NE(*one->machine(), *two->machine());
}

TEST_F(EmbeddedTest, ServesSegmentTagsAndContinuesAfterACleanEnd) {
  Open().reset();  // the directory is a cluster
  ASSERT_EQ(Firn({"tags", "create", "order", "strategy=segment", "start=100"}), 0);
  auto ids = Open();
  for (int64_t i = 100; i < 3'000; ++i) ASSERT_EQ(*ids->Next("order"), i);
  EXPECT_EQ(ids->NextRuns("order", 5'000)->front(), (IdRun{3'000, 5'000, 1}));
  ids.reset();
  EXPECT_EQ(*Open()->Next("order"), 8'000);
}

// Its period is a year, so that no period ends during the test.
TEST_F(EmbeddedTest, ServesAndSharesDatedTags) {
  const auto one = Open(), two = Open(2);
  ASSERT_EQ(Firn({"tags", "create", "order", "strategy=dated", "period=year", "step=10"}), 0);
  std::set<int64_t> all;
  for (int i = 0; i < 50; ++i) {
    for (Embedded* ids : {one.get(), two.get()}) {
      const Result<int64_t> id = ids->Next("order");
      ASSERT_TRUE(id.ok()) << id.status();
      EXPECT_TRUE(all.insert(*id).second) << *id;
    }
  }
  const DatedNumbers numbers(Period::kYear, 6);
  const int64_t year = numbers.PeriodAt(SystemClock().Wall(), TimeZone::Utc());
  EXPECT_EQ(*all.begin(), numbers.First(year));
  EXPECT_EQ(numbers.PeriodOf(*all.rbegin()), year);

  const auto runs = one->NextRuns("order", 10);
  EXPECT_EQ(runs.code(), Code::kInvalid) << "numbers to keep are of no day that is over";
  EXPECT_NE(runs.status().message().find("gives no runs"), std::string::npos) << runs.status();
}

TEST_F(EmbeddedTest, ADatedTagContinuesAfterACleanEnd) {
  auto ids = Open();
  ASSERT_EQ(Firn({"tags", "create", "order", "strategy=dated", "period=year"}), 0);
  const Result<int64_t> first = ids->Next("order");
  ASSERT_TRUE(first.ok()) << first.status();
  ids.reset();
  EXPECT_EQ(Open()->Next("order").value_or(0), *first + 1);
}

TEST_F(EmbeddedTest, ProgramsOfOneHostShareASegmentTag) {
  Open().reset();
  ASSERT_EQ(Firn({"tags", "create", "order", "strategy=segment", "step=10"}), 0);
  const auto one = Open(1);
  const auto two = Open(2);
  std::set<int64_t> all;
  for (int i = 0; i < 200; ++i) {
    EXPECT_TRUE(all.insert(*one->Next("order")).second);
    EXPECT_TRUE(all.insert(*two->Next("order")).second);
  }
}

// A host program's store: it returns every number twice, but the ledger prevents duplicates.
class ForgetfulStore final : public RangeStore {
 public:
  std::string_view name() const override { return "own"; }
  Status Check(const TagDefinition&) override { return {}; }
  Result<Range> Advance(const TagDefinition&, int64_t at_least, int64_t size) override {
    return Range{at_least, at_least + size};
  }
};

TEST_F(EmbeddedTest, AcceptsAProgramsOwnStores) {
  Open().reset();
  ASSERT_EQ(Firn({"tags", "create", "order", "store=own", "step=10"}), 0);
  ASSERT_EQ(Firn({"tags", "create", "user", "store=memory", "start=50"}), 0);
  EmbeddedOptions options = Options();
  options.extensions.stores = {{"own", [] { return std::make_unique<ForgetfulStore>(); }},
                               {"memory", [] { return std::make_unique<MemoryStore>(); }}};
  int64_t order = 0, user = 49;
  for (int round = 0; round < 2; ++round) {
    auto ids = Embedded::Open(options);
    ASSERT_TRUE(ids.ok()) << ids.status();
    for (int i = 0; i < 25; ++i) {
      const int64_t id = (*ids)->Next("order").value_or(-1);
      ASSERT_GT(id, std::exchange(order, id));
    }
    const int64_t id = (*ids)->Next("user").value_or(-1);
    ASSERT_GT(id, std::exchange(user, id));
  }
}

TEST_F(EmbeddedTest, ThreadsGetDifferentIdsFromOneObject) {
  const auto ids = Open();
  constexpr int kThreads = 4;
  constexpr int kEach = 5000;
  std::vector<std::vector<int64_t>> got(kThreads);
  {
    std::vector<std::jthread> threads;
    for (auto& mine : got) {
      threads.emplace_back([&] {
        for (int i = 0; i < kEach; ++i) mine.push_back(ids->Next().value_or(0));
      });
    }
  }
  std::set<int64_t> all;
  for (const auto& mine : got) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), static_cast<size_t>(kThreads) * kEach);
  EXPECT_FALSE(all.contains(0));
}

TEST_F(EmbeddedTest, ABatchIsExact) {
  const auto ids = Open();
  const auto runs = ids->NextRuns("default", 10'000);
  ASSERT_TRUE(runs.ok()) << runs.status();
  int64_t count = 0;
  for (const IdRun& run : *runs) count += run.count;
  EXPECT_EQ(count, 10'000);
  EXPECT_EQ(ids->NextRuns("default", 0).code(), Code::kInvalid);
  EXPECT_EQ(ids->NextRuns("default", int64_t{1} << 60).code(), Code::kInvalid);
}

TEST_F(EmbeddedTest, ServesATagCreatedLater) {
  const auto ids = Open();
  EXPECT_EQ(ids->Next("order").code(), Code::kNotFound);
  ASSERT_EQ(Firn({"tags", "create", "order", "strategy=snowflake"}), 0);
  EXPECT_TRUE(Eventually(kPatience, [&] { return ids->Next("order").ok(); }));
}

TEST_F(EmbeddedTest, CloseStopsIssuingAndReleasesTheMachineId) {
  auto ids = Open();
  const MachineId machine = *ids->machine();
  const int64_t before = *ids->Next();
  ids->Close();
  EXPECT_EQ(ids->Next().code(), Code::kUnavailable);
  ids.reset();
  ids = Open();
  EXPECT_EQ(*ids->machine(), machine);
  EXPECT_GT(*ids->Next(), before);
}

TEST_F(EmbeddedTest, ProgramsWithTheSameNameAreDistinguished) {
  const auto one = Open();
  EmbeddedOptions options = Options();
  options.state_dir = folder_ / "state2";
  auto two = Embedded::Open(options);
  ASSERT_TRUE(two.ok()) << two.status();
  const std::set<std::string> owners = Owners();
  EXPECT_EQ(owners.size(), 2u);
  two->reset();
  EXPECT_TRUE(Embedded::Open(options).ok());
  EXPECT_EQ(Owners(), owners) << "the same folder, the same owner";
}

TEST_F(EmbeddedTest, RestartsWhileZooKeeperIsUnreachable) {
  auto zookeeper = ZooKeeper::Start();
  ASSERT_TRUE(zookeeper.ok()) << zookeeper.status();
  EmbeddedOptions options = Options();
  options.registry = "zk://" + (*zookeeper)->hosts() + "/firn/embedded";
  ASSERT_EQ(
      RunFirn({"init", "--brand-new", "--force", "--workers=4", "--registry=" + options.registry})
          .exit_code,
      0);
  const int64_t before = IdOfAProgramThatDies(options);
  ASSERT_GT(before, 0);
  (*zookeeper)->KillAll();
  auto again = Embedded::Open(options);
  ASSERT_TRUE(again.ok()) << again.status();
  const int64_t after = (*again)->Next().value_or(0);
  EXPECT_GT(after, before);
  EXPECT_EQ((*again)->layout().Unpack(after)->machine, (*again)->layout().Unpack(before)->machine);
  again->reset();
  options.offline_start = false;
  options.ready_within = Milliseconds(1000);
  EXPECT_EQ(Embedded::Open(options).code(), Code::kUnavailable);
}

TEST_F(EmbeddedTest, ProgramsShareSegmentTagsOnARealZooKeeper) {
  auto zookeeper = ZooKeeper::Start();
  ASSERT_TRUE(zookeeper.ok()) << zookeeper.status();
  EmbeddedOptions options = Options();
  options.registry = "zk://" + (*zookeeper)->hosts() + "/firn/embedded";
  const auto firn = [&](const std::vector<std::string>& words) {
    return RunFirn(words, {"--registry=" + options.registry}).exit_code;
  };
  ASSERT_EQ(firn({"init", "--brand-new", "--force", "--workers=4"}), 0);
  ASSERT_EQ(firn({"tags", "create", "order", "strategy=segment", "step=10", "step_max=10"}), 0);
  ASSERT_EQ(firn({"tags", "create", "rising", "strategy=segment", "buffer=none"}), 0);
  std::set<int64_t> orders;
  int64_t last = 0;
  for (int round = 0; round < 2; ++round) {  // the second one after a clean end
    auto one = Embedded::Open(options);
    ASSERT_TRUE(one.ok()) << one.status();
    EmbeddedOptions beside = options;
    beside.instance = 2;
    auto two = Embedded::Open(beside);
    ASSERT_TRUE(two.ok()) << two.status();
    for (int i = 0; i < 30; ++i) {
      for (Embedded* const ids : {one->get(), two->get()}) {
        EXPECT_TRUE(orders.insert(ids->Next("order").value_or(0)).second);
        const int64_t rising = ids->Next("rising").value_or(0);
        EXPECT_GT(rising, std::exchange(last, rising));
      }
    }
  }
  EXPECT_FALSE(orders.contains(0));
}

TEST_F(EmbeddedTest, RefusesASecondProgramOnItsStateFolder) {
  const auto ids = Open();
  const auto refused = Embedded::Open(Options());
  EXPECT_EQ(refused.code(), Code::kConflict) << refused.status();
}

TEST_F(EmbeddedTest, DoesNotRecreateTheLostRegistryOfARememberedCluster) {
  Open().reset();
  std::filesystem::remove_all(folder_ / "registry");
  const auto refused = Embedded::Open(Options());
  EXPECT_EQ(refused.code(), Code::kConflict) << refused.status();
  EXPECT_NE(refused.status().message().find("firn restore"), std::string::npos);
}

TEST_F(EmbeddedTest, AForkedChildGetsNoIdsAndCanExit) {
  auto ids = Open();
  ASSERT_TRUE(ids->Next().ok());
  const pid_t child = fork();
  if (child == 0) {
    const bool silent = !ids->Next().ok() && !ids->NextRuns("default", 10).ok();
    ids.reset();
    _exit(silent ? 0 : 1);
  }
  int status = -1;
  ASSERT_TRUE(Eventually(kPatience, [&] { return waitpid(child, &status, WNOHANG) == child; }));
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ids->Next().ok());
}

TEST_F(EmbeddedTest, AStaticMachineIdNeedsNoRegistry) {
  EmbeddedOptions options = Options();
  options.registry = "static:29";
  EXPECT_FALSE(Embedded::Open({.registry = "static:29",
                               .state_dir = folder_ / "state",
                               .ready_within = Milliseconds(0)})
                   .ok());
  options.static_first_start = true;
  int64_t before = 0;
  {
    const auto ids = Embedded::Open(options);
    ASSERT_TRUE(ids.ok()) << ids.status();
    before = *(*ids)->Next();
    EXPECT_EQ((*ids)->layout().Unpack(before)->machine, MachineId(29));
  }
  options.static_first_start = false;
  {
    const auto again = Embedded::Open(options);
    ASSERT_TRUE(again.ok()) << again.status();
    EXPECT_GT(*(*again)->Next(), before);
  }
  options.registry = "static:1024";
  EXPECT_EQ(Embedded::Open(options).code(), Code::kInvalid);
}

TEST_F(EmbeddedTest, TheReadmesExampleRuns) {
  const Finished finished = RunToEnd({BuiltProgram("embedded_example"), folder_.path()}, kPatience);
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  std::istringstream lines(finished.out);
  std::set<int64_t> ids;
  for (int64_t id = 0; lines >> id;) ids.insert(id);
  EXPECT_EQ(ids.size(), 3u) << finished.out;
}

}  // namespace
}  // namespace firn
