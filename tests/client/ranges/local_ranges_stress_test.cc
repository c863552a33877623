// Tests many threads that take ids while answers arrive. Every id is returned at most once, and ids
// are lost only if they are dropped or left in memory.

#include <algorithm>
#include <atomic>
#include <thread>

#include <gtest/gtest.h>

#include "client/local_ranges.h"
#include "common/time/thread_index.h"
#include "tests/client/ranges/fake_fetcher.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

constexpr size_t kIdsMax = 20'000;  // per thread

// Answers requests with runs of uneven lengths, and sometimes with a failure.
class AnsweringThread {
 public:
  AnsweringThread(FakeFetcher& fetcher, VirtualClock& clock)
      : thread_([&, this] {
          for (int turn = 0; !end_; ++turn) {
            const bool fails = turn % 17 == 0;
            const bool did = fails ? fetcher.Fail(Unavailable("now and then"))
                                   : fetcher.Answer(1 + turn % 97, 1 + turn % 3);
            clock.Advance(Milliseconds(did ? 20 : 1));
            std::this_thread::yield();
          }
        }) {}
  ~AnsweringThread() {
    end_ = true;
    thread_.join();
  }

 private:
  std::atomic<bool> end_ = false;
  std::thread thread_;
};

// Takes ids until it has enough; runs on its own thread.
void TakeInto(LocalSupply& supply, std::vector<int64_t>& ids) {
  while (ids.size() < kIdsMax) {
    std::optional<int64_t> id = supply.TryTake("order");
    // Every second thread without an id waits for the fetch in progress.
    if (!id && ThreadIndex() % 2 == 0) id = supply.AwaitAndTake("order", Milliseconds(1));
    if (id) {
      ids.push_back(*id);
    } else {
      std::this_thread::yield();
    }
  }
}

// Returns the ids that `threads` threads took, in two generations so that places are reused.
std::vector<int64_t> TakeWithThreads(LocalSupply& supply, int threads) {
  std::vector<int64_t> all;
  for (int generation = 0; generation < 2; ++generation) {
    std::vector<std::vector<int64_t>> taken(static_cast<size_t>(threads));
    std::vector<std::thread> running;
    for (auto& ids : taken) running.emplace_back([&] { TakeInto(supply, ids); });
    for (auto& thread : running) thread.join();
    for (const auto& ids : taken) all.insert(all.end(), ids.begin(), ids.end());
  }
  return all;
}

void ExpectNoIdTwice(std::vector<int64_t> ids) {
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  EXPECT_TRUE(twice == ids.end()) << *twice << " was given twice";
}

class LocalRangesStressTest : public testing::TestWithParam<bool> {};

TEST_P(LocalRangesStressTest, NoIdIsGivenTwice) {
  const bool ages = GetParam();
  VirtualClock clock{WallMs(1'700'000'000'000)};
  FakeFetcher fetcher;
  const auto supply = LocalRanges(
      {ages ? LocalTag::Snowflake("order") : LocalTag::Segment("order")}, clock)(fetcher);
  std::vector<int64_t> ids;
  {
    const AnsweringThread answering(fetcher, clock);
    ids = TakeWithThreads(*supply, 8);
  }
  const auto counts = supply->counts();
  EXPECT_EQ(counts.taken, ids.size());
  EXPECT_LE(static_cast<int64_t>(counts.taken + counts.dropped), fetcher.given());
  EXPECT_TRUE(ages || counts.dropped == 0) << counts.dropped;
  ExpectNoIdTwice(std::move(ids));
}

INSTANTIATE_TEST_SUITE_P(Kinds, LocalRangesStressTest, testing::Bool(),
                         [](const auto& kind) { return kind.param ? "Snowflake" : "Segment"; });

TEST(LocalRangesCrowd, ServesMoreThreadsThanPlaces) {
  VirtualClock clock{WallMs(1'700'000'000'000)};
  FakeFetcher fetcher;
  const auto supply = LocalRanges({LocalTag::Segment("order")}, clock)(fetcher);
  const AnsweringThread answering(fetcher, clock);
  constexpr int kThreads = kThreadIndexMax + 16;
  std::vector<int64_t> ids(kThreads);
  std::atomic<int> served = 0;
  std::vector<std::thread> threads;
  for (int64_t& id : ids) {
    threads.emplace_back([&] {
      std::optional<int64_t> taken;
      while (!taken) {
        taken = supply->TryTake("order");
        if (!taken) std::this_thread::yield();
      }
      id = *taken;
      ++served;
      while (served < kThreads) std::this_thread::yield();  // so that all threads exist at once
    });
  }
  for (auto& thread : threads) thread.join();
  ExpectNoIdTwice(std::move(ids));
}

}  // namespace
}  // namespace firn
