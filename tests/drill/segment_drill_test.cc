// Tests processes that serve segment tags, on a real ZooKeeper.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <unordered_set>
#include <vector>

#include <gtest/gtest.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "registry/cluster/cluster_setup.h"
#include "registry/cluster/tag_store.h"
#include "registry/seam/blocking_coordinator.h"
#include "registry/zk/zk_coordinator.h"
#include "tests/drill/callers/segment_journal.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zookeeper.h"

namespace firn {
namespace {

constexpr Milliseconds kTakersPatience{90'000};
constexpr const char* kRoot = "/firn/drill";

// Returns the duration of the faults: FIRN_SOAK_SECONDS, or this default.
Milliseconds SoakTime(int64_t seconds) {
  const char* text = std::getenv("FIRN_SOAK_SECONDS");
  return Milliseconds(1'000 * (text == nullptr ? seconds : std::atoll(text)));
}

class SegmentDrill : public testing::Test {
 protected:
  void StartRegistry(TagDefinition tag) {
    auto started = ZooKeeper::Start();
    ASSERT_TRUE(started.ok()) << started.status();
    zookeeper_ = *std::move(started);
    tag.name = "order";
    tag.strategy = "segment";
    OnRegistry([&](BlockingCoordinator& registry) {
      ASSERT_TRUE(registry.PrepareRoot().ok());
      ASSERT_TRUE(MakeCluster(registry, {.workers = 8}, SystemEntropy()).ok());
      ASSERT_TRUE(TagStore(registry).Create(tag).ok());
    });
  }

  template <typename Do>
  void OnRegistry(Do act) {
    ZkCoordinator coordinator({.hosts = zookeeper_->hosts(), .root = kRoot}, SystemClock());
    BlockingCoordinator registry(coordinator, SystemClock());
    ASSERT_TRUE(registry.Connect(kTakersPatience).ok());
    act(registry);
  }

  bool Frozen() {
    bool frozen = false;
    OnRegistry([&](BlockingCoordinator& registry) {
      const Result<MetaAsRead> meta = ReadMeta(registry);
      frozen = meta.ok() && meta->meta.frozen;
    });
    return frozen;
  }

  // Starts process `i`, perhaps again, with its own state folder and journal.
  void Launch(size_t i, int threads, int pause_ms = 1) {
    const std::string name = std::to_string(i);
    Process::Options options;
    options.output_file = Log(i);
    Process process({BuiltProgram("drill_segment_taker"), "zk://" + zookeeper_->hosts() + kRoot,
                     folder_ / ("state" + name), std::to_string(i + 1), Journal(i),
                     std::to_string(threads), std::to_string(pause_ms)},
                    options);
    if (i == processes_.size()) {
      processes_.push_back(std::move(process));
    } else {
      processes_[i] = std::move(process);
    }
  }
  std::string Log(size_t i) const { return folder_ / ("log" + std::to_string(i)); }
  std::string Journal(size_t i) const { return folder_ / ("journal" + std::to_string(i)); }

  size_t Taken(size_t i) const {
    std::error_code none;
    const uintmax_t bytes = std::filesystem::file_size(Journal(i), none);
    return none ? 0 : static_cast<size_t>(bytes) / sizeof(TakenNumber);
  }
  // Waits until each process has this number of further answered calls.
  bool AllGoOn(size_t calls) {
    std::vector<size_t> before;
    for (size_t i = 0; i < processes_.size(); ++i) before.push_back(Taken(i));
    return Eventually(kTakersPatience, [&] {
      for (size_t i = 0; i < processes_.size(); ++i) {
        if (Taken(i) < before[i] + calls) return false;
      }
      return true;
    });
  }

  // Kills all processes. Returns all numbers that any of them ever got.
  std::vector<TakenNumber> Collect() {
    std::vector<TakenNumber> all;
    for (size_t i = 0; i < processes_.size(); ++i) {
      processes_[i].Kill();
      processes_[i].Wait(kTakersPatience);
      const std::vector<TakenNumber> taken = ReadTaken(Journal(i));
      all.insert(all.end(), taken.begin(), taken.end());
    }
    return all;
  }

  // Prints one line, and checks that no number was issued twice. Returns the number of failed
  // calls.
  int64_t Judge(const std::vector<TakenNumber>& all) {
    std::unordered_set<int64_t> numbers;
    int64_t duplicates = 0, high = 0;
    for (const TakenNumber& one : all) duplicates += numbers.insert(one.number).second ? 0 : 1;
    const int64_t without = CallsWithout();
    OnRegistry([&](BlockingCoordinator& registry) {
      high = TagStore(registry).Read("order")->tag().high;
    });
    EXPECT_EQ(duplicates, 0);
    EXPECT_FALSE(numbers.empty());
    for (const int64_t number : numbers) EXPECT_LT(number, high);
    const auto got = static_cast<int64_t>(numbers.size());
    std::printf(
        "drill %s: numbers %lld, duplicates %lld, calls without one %lld, ledger at %lld, "
        "taken and not seen given out %lld\n",
        testing::UnitTest::GetInstance()->current_test_info()->name(), static_cast<long long>(got),
        static_cast<long long>(duplicates), static_cast<long long>(without),
        static_cast<long long>(high), static_cast<long long>(high - 1 - got));
    return without;
  }

  // Returns the number of failed calls, and prints the last reason.
  int64_t CallsWithout() const {
    int64_t count = 0;
    std::string last;
    for (size_t i = 0; i < processes_.size(); ++i) {
      std::ifstream log(Log(i));
      for (std::string line; std::getline(log, line);) {
        if (!line.starts_with(kNoNumber)) continue;
        ++count;
        last = line;
      }
    }
    if (count > 0) std::printf("%s\n", last.c_str());
    return count;
  }

  TempDir folder_;
  std::unique_ptr<ZooKeeper> zookeeper_;
  std::vector<Process> processes_;
};

TagDefinition Steps(int64_t step, int64_t step_max, int64_t prefetch_at = 10) {
  TagDefinition tag;
  tag.step = step;
  tag.step_max = step_max;
  tag.prefetch_at = prefetch_at;
  return tag;
}

TEST_F(SegmentDrill, KilledProcessesAndRegistriesRepeatNoNumber) {
  ASSERT_NO_FATAL_FAILURE(StartRegistry(Steps(50, 500)));
  for (size_t i = 0; i < 4; ++i) Launch(i, 16, 5);
  SeededEntropy dice(20261121);
  ASSERT_TRUE(AllGoOn(20));
  const BootMs end = SystemClock().Boot() + SoakTime(5);
  for (int kills = 0; kills < 2 || SystemClock().Boot() < end; ++kills) {
    if (kills % 4 == 1) {
      zookeeper_->Kill(0);
      ASSERT_TRUE(zookeeper_->Restart(0).ok());
      ASSERT_TRUE(zookeeper_->AwaitReady().ok());
    } else {
      const size_t i = dice.Below(processes_.size());
      processes_[i].Kill();
      processes_[i].Wait(kTakersPatience);
      Launch(i, 16, 5);
    }
    ASSERT_TRUE(AllGoOn(20)) << "service must return by itself";
  }
  Judge(Collect());
}

TEST_F(SegmentDrill, ARolledBackRegistryIsFrozenAndNoNumberRepeatsAfterItsRestore) {
  ASSERT_NO_FATAL_FAILURE(StartRegistry(Steps(20, 20)));
  for (size_t i = 0; i < 2; ++i) Launch(i, 2, 1);
  ASSERT_TRUE(AllGoOn(50));
  ASSERT_TRUE(zookeeper_->SaveData().ok());
  ASSERT_TRUE(AllGoOn(500)) << "so that each takes ranges that are not in the backup";
  ASSERT_TRUE(zookeeper_->RestoreData().ok());
  ASSERT_TRUE(Eventually(kTakersPatience, [&] { return Frozen(); }));

  const Finished restored = RunFirn({"restore", "--registry=zk://" + zookeeper_->hosts() + kRoot,
                                     "--set=workers=8", "--skew_max_ms=5000", "--tag_gap=100000"});
  ASSERT_EQ(restored.exit_code, 0) << restored.err << restored.out;
  ASSERT_TRUE(AllGoOn(500)) << "without help";
  EXPECT_FALSE(Frozen());
  Judge(Collect());
}

TEST_F(SegmentDrill, NumbersInMemoryHideAnOutageOfTheRegistry) {
  ASSERT_NO_FATAL_FAILURE(StartRegistry(Steps(1'000'000, 1'000'000, 1)));
  Launch(0, 4, 2);
  ASSERT_TRUE(AllGoOn(100));
  zookeeper_->Kill(0);
  const BootMs end = SystemClock().Boot() + SoakTime(3);
  while (SystemClock().Boot() < end) ASSERT_TRUE(AllGoOn(100));
  ASSERT_TRUE(zookeeper_->Restart(0).ok());
  ASSERT_TRUE(zookeeper_->AwaitReady().ok());
  ASSERT_TRUE(AllGoOn(100));
  EXPECT_EQ(Judge(Collect()), 0) << "calls without a number";
}

TEST_F(SegmentDrill, WithoutABufferNumbersRiseInRealTimeOverThreeProcesses) {
  TagDefinition tag;
  tag.buffer = TagBuffer::kNone;
  ASSERT_NO_FATAL_FAILURE(StartRegistry(tag));
  for (size_t i = 0; i < 3; ++i) Launch(i, 2);
  ASSERT_TRUE(AllGoOn(100));
  const std::vector<TakenNumber> all = Collect();
  Judge(all);

  std::vector<TakenNumber> by_begin = all, by_end = all;
  const auto earlier = [](int64_t TakenNumber::*when) {
    return [when](const TakenNumber& a, const TakenNumber& b) { return a.*when < b.*when; };
  };
  std::sort(by_begin.begin(), by_begin.end(), earlier(&TakenNumber::begin_ms));
  std::sort(by_end.begin(), by_end.end(), earlier(&TakenNumber::end_ms));
  int64_t highest = 0, wrong = 0, compared = 0;
  size_t ended = 0;
  for (const TakenNumber& call : by_begin) {
    for (; ended < by_end.size() && by_end[ended].end_ms < call.begin_ms; ++ended) {
      highest = std::max(highest, by_end[ended].number);
    }
    compared += highest > 0 ? 1 : 0;
    wrong += call.number <= highest ? 1 : 0;
  }
  EXPECT_GT(compared, 100);
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace firn
