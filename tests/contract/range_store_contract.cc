#include "tests/contract/range_store_contract.h"

#include <algorithm>
#include <fstream>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace firn {
namespace {

constexpr int kProcesses = 4;
constexpr int kThreads = 16;
constexpr int kRangesEach = 10;

// Takes ranges in kThreads threads at once, each with its own store. Returns the number of failed
// calls.
int TakeRanges(RangeStoreWorld& world, const TagDefinition& tag, std::vector<Range>& out) {
  std::vector<std::vector<Range>> taken(kThreads);
  std::vector<int> failures(kThreads);
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const std::unique_ptr<RangeStore> store = world.Open();
      for (int n = 0; n < kRangesEach; ++n) {
        const Result<Range> range = store->Advance(tag, 1, 7 + n);
        range.ok() ? taken[i].push_back(*range) : void(++failures[i]);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& ranges : taken) out.insert(out.end(), ranges.begin(), ranges.end());
  int failed = 0;
  for (const int count : failures) failed += count;
  return failed;
}

// Calls TakeRanges in another process, which writes its ranges into a file.
pid_t TakeInAnotherProcess(RangeStoreWorld& world, const TagDefinition& tag,
                           const std::string& file) {
  const pid_t child = fork();
  if (child != 0) return child;
  std::vector<Range> ranges;
  const int failed = TakeRanges(world, tag, ranges);
  std::ofstream out(file);
  for (const Range& range : ranges) out << range.begin << ' ' << range.end << '\n';
  out.close();
  _exit(failed == 0 ? 0 : 1);
}

std::vector<Range> ReadRanges(const std::string& file) {
  std::vector<Range> ranges;
  std::ifstream in(file);
  for (Range range; in >> range.begin >> range.end;) ranges.push_back(range);
  return ranges;
}

// Whether all ranges together have no overlaps, and no gaps unless gaps are
// permitted.
void ExpectOneRow(std::vector<Range> ranges, int64_t begin, bool without_gaps) {
  const auto by_begin = [](const Range& a, const Range& b) { return a.begin < b.begin; };
  std::sort(ranges.begin(), ranges.end(), by_begin);
  for (const Range& range : ranges) {
    ASSERT_TRUE(range.begin == begin || (range.begin > begin && !without_gaps))
        << range.begin << " after " << begin;
    ASSERT_GT(range.end, range.begin);
    begin = range.end;
  }
}

}  // namespace

void RangeStoreContract::SetUp() {
  world = GetParam().make();
  if (world == nullptr) GTEST_SKIP() << "the server of " << GetParam() << " is not installed";
  store = world->Open();
}

TagDefinition RangeStoreContract::Tag(const std::string& name, int64_t start) {
  TagDefinition tag;
  tag.name = name;
  tag.strategy = "segment";
  tag.store = store->name();
  tag.start = start;
  if (world->stands_in()) tag.when_store_is_away = StoreAway::kLedger;
  world->Prepare(tag);
  return tag;
}

TEST_P(RangeStoreContract, ManyThreadsAndProcessesGetDisjointRanges) {
  if (!world->is_atomic()) return;
  const TagDefinition tag = Tag("order");
  std::vector<Range> all;
  if (world->is_shared()) {
    const TempDir folder;
    const auto file = [&](int i) { return folder / std::to_string(i); };
    std::vector<pid_t> children;
    for (int i = 0; i < kProcesses; ++i) {
      children.push_back(TakeInAnotherProcess(*world, tag, file(i)));
    }
    for (int i = 0; i < kProcesses; ++i) {
      int status = -1;
      ASSERT_EQ(waitpid(children[static_cast<size_t>(i)], &status, 0),
                children[static_cast<size_t>(i)]);
      EXPECT_EQ(status, 0);
      const std::vector<Range> ranges = ReadRanges(file(i));
      all.insert(all.end(), ranges.begin(), ranges.end());
    }
    EXPECT_EQ(all.size(), size_t{kProcesses * kThreads * kRangesEach});
  } else {
    EXPECT_EQ(TakeRanges(*world, tag, all), 0);
  }
  ExpectOneRow(std::move(all), 1, world->gives_all());
}

TEST_P(RangeStoreContract, BeginsAtOrAboveTheRequestedNumber) {
  if (!world->begins_where_told()) return;
  const TagDefinition tag = Tag("order", 100);
  EXPECT_EQ(store->Advance(tag, 100, 10).value_or({}), (Range{100, 110}));
  EXPECT_EQ(store->Advance(tag, 100, 10).value_or({}), (Range{110, 120}));
  EXPECT_EQ(store->Advance(tag, 1007, 10).value_or({}), (Range{1007, 1017}));
  EXPECT_EQ(store->Advance(tag, 1017, 3).value_or({}), (Range{1017, 1020}));
  EXPECT_EQ(store->Advance(tag, 100, 1).value_or({}), (Range{1020, 1021}));
}

TEST_P(RangeStoreContract, AnotherStoreContinuesAfterTheFirst) {
  const TagDefinition tag = Tag("order");
  ASSERT_TRUE(store->Advance(tag, 1, 10).ok());
  if (!world->is_shared()) return;
  EXPECT_EQ(world->Open()->Advance(tag, 1, 10).value_or({}), (Range{11, 21}));
}

TEST_P(RangeStoreContract, UnusualNamesAreDistinctTags) {
  const std::string names[] = {"order",
                               "Order",
                               "a b",
                               "a/b",
                               "'; DROP --",
                               "\"quoted\"",
                               "back\\slash",
                               "100%_",
                               "*?[a]",
                               "M\xC3\xBCller & S\xC3\xB6hne",
                               "\xF0\x9F\x8C\xA8",
                               std::string(128, 'x')};
  for (const std::string& name : names) {
    if (!world->Permits(name)) continue;
    const TagDefinition tag = Tag(name);
    ASSERT_EQ(store->Check(tag), Status()) << name;
    const Result<Range> range = store->Advance(tag, 1, 10);
    ASSERT_TRUE(range.ok()) << name << ": " << range.status();
    EXPECT_EQ(*range, (Range{1, 11})) << name;
  }
}

TEST_P(RangeStoreContract, TheLastRangeIsShortAndThenNumbersAreExhausted) {
  const int64_t end = world->end();
  const TagDefinition tag = Tag("order", end - 15);
  EXPECT_EQ(store->Advance(tag, end - 15, 10).value_or({}), (Range{end - 15, end - 5}));
  EXPECT_EQ(store->Advance(tag, end - 15, 10).value_or({}), (Range{end - 5, end}));
  EXPECT_EQ(store->Advance(tag, end - 15, 10).code(), Code::kExhausted);
  EXPECT_EQ(store->Advance(tag, end, 1).code(), Code::kExhausted);
}

TEST_P(RangeStoreContract, ARefusedCallChangesNothing) {
  const TagDefinition tag = Tag("order");
  ASSERT_TRUE(store->Advance(tag, 1, 10).ok());
  EXPECT_EQ(store->Advance(tag, 1, 0).code(), Code::kInvalid);
  EXPECT_EQ(store->Advance(tag, 1, -5).code(), Code::kInvalid);
  if (world->begins_where_told()) {
    EXPECT_EQ(store->Advance(tag, -1, 5).code(), Code::kInvalid);
    EXPECT_EQ(store->Advance(tag, world->end(), 5).code(), Code::kExhausted);
  }
  EXPECT_EQ(store->Advance(tag, 1, 10).value_or({}), (Range{11, 21}));
}

TEST_P(RangeStoreContract, ReportsWhetherALedgerMayStandIn) {
  EXPECT_EQ(store->permits_stand_in(), world->permits_stand_in());
  if (world->end() != kRangeEnd) return;
  ASSERT_EQ(store->Advance(Tag("order", kRangeEnd), kRangeEnd, 1).code(), Code::kExhausted);
  EXPECT_FALSE(store->away()) << "it has answered";
}

// A ledger does not know the numbers of other clusters, which a store without data would issue
// again.
TEST_P(RangeStoreContract, ACounterBelongsToOneCluster) {
  if (!world->marks_cluster()) return;
  store->Listen({.cluster = "a cluster"});
  const std::unique_ptr<RangeStore> other = world->Open();
  other->Listen({.cluster = "another cluster"});
  const TagDefinition tag = Tag("order");
  TagDefinition alone = tag;
  alone.when_store_is_away = StoreAway::kRefuse;
  ASSERT_EQ(store->Advance(tag, 1, 10).value_or({}), (Range{1, 11}));
  for (const TagDefinition& theirs : {tag, alone}) {
    const auto refused = other->Advance(theirs, 11, 10);
    EXPECT_EQ(refused.code(), Code::kDenied);
    for (const std::string words :
         {"belongs to the cluster a cluster", "use another store or tag"}) {
      EXPECT_NE(refused.status().message().find(words), std::string::npos) << refused.status();
    }
    EXPECT_FALSE(other->away());
  }
  EXPECT_EQ(store->Advance(alone, 11, 10).value_or({}), (Range{11, 21})) << "of the same cluster";
}

TEST_P(RangeStoreContract, LargeRangesWorkLikeSmallOnes) {
  const TagDefinition tag = Tag("order");
  const int64_t size = 1'000'000'000'000;
  EXPECT_EQ(store->Advance(tag, 1, size).value_or({}), (Range{1, size + 1}));
  EXPECT_EQ(store->Advance(tag, 1, 1).value_or({}), (Range{size + 1, size + 2}));
}

}  // namespace firn
