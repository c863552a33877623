#include "client/local_ranges.h"

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client/ranges/fetch_size.h"
#include "common/time/thread_index.h"
#include "tests/client/ranges/fake_fetcher.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

class LocalRangesTest : public testing::Test {
 protected:
  void Make(std::vector<LocalTag> tags) {
    supply_ = LocalRanges(std::move(tags), clock_, entropy_)(fetcher_);
  }

  // Takes one id; returns 0 if there is none.
  int64_t Take(std::string_view tag = "order") { return supply_->TryTake(tag).value_or(0); }
  // Takes all ids, which must ascend, and returns their number.
  int64_t TakeAll() {
    int64_t count = 0;
    bool ascend = true;
    for (int64_t id = Take(), before = 0; id != 0; before = id, id = Take(), ++count) {
      ascend &= id > before;
    }
    EXPECT_TRUE(ascend);
    return count;
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{5};
  FakeFetcher fetcher_;
  std::unique_ptr<LocalSupply> supply_;
};

TEST_F(LocalRangesTest, FetchesNothingBeforeTheFirstCall) {
  Make({LocalTag::Segment("order")});
  EXPECT_EQ(fetcher_.fetches(), 0);
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(fetcher_.fetches(), 1);
}

TEST_F(LocalRangesTest, StartsNoSecondFetchWhileOneIsInProgress) {
  Make({LocalTag::Segment("order")});
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Take(), 0);
  EXPECT_EQ(fetcher_.fetches(), 1);
  EXPECT_EQ(supply_->counts().missed, 5u);
}

TEST_F(LocalRangesTest, ReturnsEachFetchedIdOnceInOrder) {
  Make({LocalTag::Segment("order")});
  Take();
  fetcher_.Answer(/*run=*/10, /*stride=*/3);
  for (int64_t i = 0; i < FetchSize::kFirst; ++i) EXPECT_EQ(Take(), 1 + 3 * i);
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(supply_->counts().taken, static_cast<uint64_t>(FetchSize::kFirst));
}

TEST_F(LocalRangesTest, StartsTheNextFetchWhenHalfIsUsed) {
  Make({LocalTag::Segment("order")});
  Take();
  fetcher_.Answer();
  for (int64_t i = 0; i < FetchSize::kFirst / 2 - 2; ++i) Take();
  EXPECT_EQ(fetcher_.fetches(), 1);
  for (int i = 0; i < 4; ++i) Take();
  EXPECT_EQ(fetcher_.fetches(), 2);
  fetcher_.Answer();
  EXPECT_EQ(TakeAll(), 2 * FetchSize::kFirst - (FetchSize::kFirst / 2 + 2));
}

TEST_F(LocalRangesTest, StartsTheNextFetchAtOnceIfHalfABufferDoesNotLast) {
  Make({LocalTag::Segment("order")});
  for (int i = 0; i < 2; ++i) {
    Take();
    clock_.Advance(Milliseconds(30));  // duration of the fetch
    fetcher_.Answer();
    TakeAll();  // the virtual clock does not advance
  }
  clock_.Advance(Milliseconds(30));
  fetcher_.Answer();
  const int before = fetcher_.fetches();
  EXPECT_GT(Take(), 0);
  EXPECT_EQ(fetcher_.fetches(), before + 1);
}

TEST_F(LocalRangesTest, OtherTagsHaveNoSupply) {
  Make({LocalTag::Segment("order"), LocalTag::Snowflake("")});
  EXPECT_EQ(Take("orde"), 0);
  EXPECT_EQ(fetcher_.fetches(), 0);
  EXPECT_EQ(supply_->counts().missed, 0u);
  Take("");
  EXPECT_EQ(fetcher_.fetches(), 1);
  Take("order");
  EXPECT_EQ(fetcher_.fetches(), 2);
}

TEST_F(LocalRangesTest, NamesTagsThatCannotHaveASupply) {
  std::vector<LocalTag> tags;
  for (int i = 0; i < 64; ++i) tags.push_back(LocalTag::Segment("order" + std::to_string(i)));
  Make(tags);
  EXPECT_TRUE(supply_->status().ok()) << supply_->status();
  tags.push_back(LocalTag::Snowflake("order7"));
  tags.push_back(LocalTag::Segment(std::string(70'000, 'x')));
  Make(tags);
  EXPECT_EQ(supply_->status().code(), Code::kInvalid);
  for (const char* fault : {"66 tags; the maximum is 64", "'order7' twice", "70000 bytes"}) {
    EXPECT_NE(supply_->status().message().find(fault), std::string::npos) << supply_->status();
  }
  EXPECT_EQ(Take("order1"), 0);
  EXPECT_EQ(fetcher_.fetches(), 0);
}

TEST_F(LocalRangesTest, DropsAndCountsOldIds) {
  Make({LocalTag::Snowflake("order")});
  Take();
  clock_.Advance(Milliseconds(300));  // duration of the fetch, and age of its ids
  fetcher_.Answer();
  EXPECT_GT(Take(), 0);
  clock_.Advance(Milliseconds(700));
  EXPECT_GT(Take(), 0);
  clock_.Advance(Milliseconds(1));
  EXPECT_EQ(Take(), 0);
  EXPECT_EQ(supply_->counts().dropped, static_cast<uint64_t>(FetchSize::kFirst - 2));
}

TEST_F(LocalRangesTest, DropsOldIdsOfBothBuffersAndAThreadsPiece) {
  Make({{.tag = "order",
         .max_age = Milliseconds(1000),
         .lasts = Milliseconds(10),
         .fetch_max = 10'000}});
  // Large enough for pieces of many ids.
  for (int i = 0; i < 20; ++i) {
    TakeAll();
    fetcher_.Answer();
    clock_.Advance(Milliseconds(1));
  }
  int64_t taken = TakeAll();
  fetcher_.Answer();
  const auto before = supply_->counts();
  while (fetcher_.waiting() == 0) taken += Take() > 0 ? 1 : 0;
  fetcher_.Answer();
  clock_.Advance(Milliseconds(1001));
  EXPECT_EQ(Take(), 0);
  const auto after = supply_->counts();
  EXPECT_EQ(static_cast<int64_t>(after.taken + after.dropped), fetcher_.given());
  EXPECT_GT(after.dropped, before.dropped + 1000);
}

TEST_F(LocalRangesTest, KeepsIdsOfSegmentTags) {
  Make({LocalTag::Segment("order")});
  Take();
  fetcher_.Answer();
  clock_.Advance(std::chrono::hours(1000));
  EXPECT_EQ(TakeAll(), FetchSize::kFirst);
  EXPECT_EQ(supply_->counts().dropped, 0u);
}

TEST_F(LocalRangesTest, TheSizeFollowsTheRate) {
  Make({{.tag = "order", .fetch_max = 50'000}});
  // At full speed the size grows to the maximum.
  for (int i = 0; i < 20; ++i) {
    TakeAll();
    fetcher_.Answer();
    clock_.Advance(Milliseconds(10));
  }
  Take();
  EXPECT_EQ(TakeAll() + 1, 50'000);
  // With one id per second it shrinks again.
  for (int i = 0; i < 200; ++i) {
    fetcher_.Answer();
    clock_.Advance(Milliseconds(10'000));
    TakeAll();
  }
  EXPECT_LT(fetcher_.waiting(), 10);
}

TEST_F(LocalRangesTest, WaitsAfterAFailure) {
  Make({LocalTag::Segment("order")});
  Take();
  fetcher_.Fail(Unavailable("connection refused"));
  Take();
  EXPECT_EQ(fetcher_.fetches(), 1);
  clock_.Advance(Milliseconds(10));
  Take();
  EXPECT_EQ(fetcher_.fetches(), 2);
  fetcher_.Fail(NotFound("no such tag"));
  clock_.Advance(Milliseconds(400));
  Take();
  EXPECT_EQ(fetcher_.fetches(), 2);
  clock_.Advance(Milliseconds(1000));
  Take();
  EXPECT_EQ(fetcher_.fetches(), 3);
  EXPECT_TRUE(fetcher_.Answer());
  EXPECT_GT(Take(), 0);
}

TEST_F(LocalRangesTest, DropsIdsOfADeletedTag) {
  Make({{.tag = "order", .fetch_max = 128 * 64}});
  // Grows the fetches, so that a thread's piece has many ids.
  for (int i = 0; i < 4; ++i) {
    Take();
    fetcher_.Answer();
    TakeAll();
  }
  fetcher_.Answer();
  ASSERT_GT(Take(), 0);
  while (fetcher_.waiting() == 0) ASSERT_GT(Take(), 0);
  ASSERT_GT(Take(), 0) << "half of the buffer is left";
  fetcher_.Fail(NotFound("no tag 'order'"));
  EXPECT_EQ(Take(), 0);
  const LocalSupply::Counts counts = supply_->counts();
  EXPECT_EQ(static_cast<int64_t>(counts.taken + counts.dropped), fetcher_.given());
  EXPECT_GT(counts.dropped, 1000u);
  clock_.Advance(Milliseconds(2000));
  EXPECT_EQ(Take(), 0);
  fetcher_.Answer();
  EXPECT_GT(Take(), 0) << "the tag was created again";
}

TEST_F(LocalRangesTest, RequestsFewerIdsAfterARefusalOfTheSize) {
  Make({LocalTag::Segment("order")});
  Take();
  int64_t asked = fetcher_.waiting();
  for (int tries = 0; asked > 50 && tries < 10; ++tries) {
    fetcher_.Fail(Invalid("at most 50"));
    clock_.Advance(Milliseconds(5000));
    Take();
    EXPECT_LE(fetcher_.waiting(), asked / 2);
    asked = fetcher_.waiting();
  }
  EXPECT_TRUE(fetcher_.Answer());
  EXPECT_EQ(TakeAll(), asked);
}

// --- waiting for a fetch ------------------------------------------------------------------------

TEST_F(LocalRangesTest, WaitingThreadsGetIdsOfTheFetchInProgress) {
  Make({LocalTag::Segment("order")});
  Take();
  constexpr int kThreads = 8;
  std::atomic<int> served = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(
        [&] { served += supply_->AwaitAndTake("order", Milliseconds(60'000)) ? 1 : 0; });
  }
  fetcher_.Answer();
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(served, kThreads);
  EXPECT_EQ(supply_->counts().awaited, static_cast<uint64_t>(kThreads));
  EXPECT_EQ(supply_->counts().missed, 1u);
}

TEST_F(LocalRangesTest, DoesNotWaitWithoutAFetchInProgress) {
  Make({LocalTag::Segment("order")});
  EXPECT_FALSE(supply_->AwaitAndTake("invoice", Milliseconds(60'000)));
  EXPECT_FALSE(supply_->AwaitAndTake("order", Milliseconds(60'000)));
  Take();
  std::thread waiting([&] { EXPECT_FALSE(supply_->AwaitAndTake("order", Milliseconds(60'000))); });
  fetcher_.Fail(Unavailable("connection refused"));
  waiting.join();
}

TEST_F(LocalRangesTest, StopsWaitingAfterTheTimeout) {
  Make({LocalTag::Segment("order")});
  Take();
  EXPECT_FALSE(supply_->AwaitAndTake("order", Milliseconds(1)));
  EXPECT_FALSE(supply_->AwaitAndTake("order", Milliseconds(0)));
}

// --- threads and processes ----------------------------------------------------------------------

TEST_F(LocalRangesTest, ThePieceOfAnEndedThreadGoesToAnother) {
  Make({LocalTag::Segment("order")});
  Take();
  fetcher_.Answer();
  TakeAll();
  fetcher_.Answer();
  int64_t taken = 0;
  for (int i = 0; i < 50; ++i) {
    std::thread([&] { taken += Take() > 0 ? 1 : 0; }).join();
  }
  taken += TakeAll();
  const auto counts = supply_->counts();
  EXPECT_EQ(counts.dropped, 0u);
  EXPECT_EQ(counts.taken, static_cast<uint64_t>(FetchSize::kFirst + taken));
  EXPECT_EQ(static_cast<int64_t>(counts.taken), fetcher_.given());
}

TEST_F(LocalRangesTest, AForkedChildDoesNotUseItsParentsIds) {
  Make({LocalTag::Segment("order")});
  Take();
  fetcher_.Answer();
  const int64_t before = Take();
  ASSERT_GT(before, 0);
  const pid_t child = fork();
  if (child == 0) {
    bool given = supply_->TryTake("order").has_value();
    std::thread([&] { given |= supply_->TryTake("order").has_value(); }).join();
    _exit(given ? 1 : 0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0) << "the child was given an id";
  EXPECT_EQ(Take(), before + 1);
}

TEST(ThreadIndex, BelongsToAThreadAndIsReleased) {
  const int own = ThreadIndex();
  EXPECT_EQ(ThreadIndex(), own);
  for (int i = 0; i < 2 * kThreadIndexMax; ++i) {
    std::thread([own] {
      EXPECT_GE(ThreadIndex(), 0);
      EXPECT_NE(ThreadIndex(), own);
    }).join();
  }
}

}  // namespace
}  // namespace firn
