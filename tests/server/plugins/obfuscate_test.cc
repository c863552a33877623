#include "server/plugins/obfuscate.h"

#include <atomic>
#include <limits>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/time/entropy.h"
#include "tests/support/seed.h"

namespace firn {
namespace {

using ::testing::HasSubstr;

std::shared_ptr<const BlockCipher> Cipher(uint8_t seed = 1, size_t bytes = 32) {
  return *MakeAes(SecretKey(std::vector<uint8_t>(bytes, seed)));
}

std::shared_ptr<ObfuscatePlugin> Make(int64_t width, std::string_view tag = "order") {
  return *ObfuscatePlugin::Make(Cipher(), tag, width);
}

// Returns what a caller gets for these runs, or the refusal.
Result<std::vector<int64_t>> Shown(ObfuscatePlugin& plugin, Runs runs, Form form = Form::kNumbers) {
  const Request request{.tag = "order", .count = runs.count(), .form = form};
  if (const auto refusal = plugin.Before(request)) return Invalid(refusal->message);
  if (const auto refusal = plugin.After(request, runs)) return Exhausted(refusal->message);
  std::vector<int64_t> ids;
  runs.ForEach([&](int64_t id) { ids.push_back(id); });
  return ids;
}

Runs Of(std::initializer_list<IdRun> list) {
  Runs runs;
  for (const IdRun& run : list) runs.Add(run);
  return runs;
}

TEST(ObfuscateTest, ReplacesEachIdInItsPlace) {
  const auto plugin = Make(9);
  const auto shown = Shown(*plugin, Of({{100, 150, 1}, {5000, 3, 1024}}));
  ASSERT_TRUE(shown.ok()) << shown.status();
  ASSERT_EQ(shown->size(), 153u);
  for (int64_t i = 0; i < 150; ++i) EXPECT_EQ(*plugin->Reveal((*shown)[size_t(i)]), 100 + i);
  for (int64_t i = 0; i < 3; ++i)
    EXPECT_EQ(*plugin->Reveal((*shown)[150 + size_t(i)]), 5000 + i * 1024);
}

TEST(ObfuscateTest, RevealIsTheInverseAtEveryWidth) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  SeededEntropy entropy(seed);
  for (int64_t width = 6; width <= 19; ++width) {
    const auto plugin = Make(width);
    std::vector<int64_t> ids = {0, 1, plugin->most() - 1, plugin->most()};
    for (int i = 0; i < 200; ++i) {
      ids.push_back(static_cast<int64_t>(entropy.Below(static_cast<uint64_t>(plugin->most()))));
    }
    for (const int64_t id : ids) {
      const int64_t shown = *plugin->Hide(id);
      ASSERT_GE(shown, 0);
      ASSERT_LE(shown, plugin->most());
      ASSERT_EQ(*plugin->Reveal(shown), id) << "width " << width;
    }
  }
}

// FF1 permutes more numbers than there are ids.
TEST(ObfuscateTest, Width19ShowsEveryIdAsAnIdAlsoInBatches) {
  const auto plugin = Make(19);
  EXPECT_EQ(plugin->most(), std::numeric_limits<int64_t>::max());
  const int64_t first = plugin->most() - 2'000;
  const auto shown = Shown(*plugin, Of({{first, 2'001, 1}}));
  ASSERT_TRUE(shown.ok()) << shown.status();
  for (size_t i = 0; i < shown->size(); ++i) {
    const int64_t id = first + static_cast<int64_t>(i);
    ASSERT_GE((*shown)[i], 0);
    ASSERT_EQ((*shown)[i], *plugin->Hide(id));
    ASSERT_EQ(*plugin->Reveal((*shown)[i]), id);
  }
}

TEST(ObfuscateTest, ShowsNoTwoIdsAsOne) {
  const auto plugin = Make(6);
  std::vector<bool> seen(1'000'000);
  for (int64_t from = 0; from < 1'000'000; from += 50'000) {
    const auto shown = Shown(*plugin, Of({{from, 50'000, 1}}));
    ASSERT_TRUE(shown.ok());
    for (const int64_t id : *shown) {
      ASSERT_FALSE(seen[static_cast<size_t>(id)]) << id;
      seen[static_cast<size_t>(id)] = true;
    }
  }
}

TEST(ObfuscateTest, RefusesAnIdBeyondTheWidthAndShowsNothing) {
  const auto plugin = Make(6);
  EXPECT_TRUE(Shown(*plugin, Of({{999'999, 1, 1}})).ok());
  for (const Runs& runs :
       {Of({{1'000'000, 1, 1}}), Of({{999'999, 2, 1}}), Of({{0, 1, 1}, {999'000, 2, 1024}}),
        Of({{std::numeric_limits<int64_t>::max(), 1, 1}}), Of({{-1, 1, 1}})}) {
    const auto shown = Shown(*plugin, runs);
    EXPECT_EQ(shown.code(), Code::kExhausted);
    EXPECT_THAT(shown.status().message(), HasSubstr("obfuscate.width"));
  }
  EXPECT_EQ(plugin->Hide(1'000'000).code(), Code::kInvalid);
  EXPECT_EQ(plugin->Hide(-1).code(), Code::kInvalid);
  EXPECT_EQ(plugin->Reveal(1'000'000).code(), Code::kInvalid);
}

TEST(ObfuscateTest, RefusesRunsBeforeAnIdIsUsed) {
  EXPECT_EQ(Shown(*Make(9), Of({{1, 10, 1}}), Form::kRuns).code(), Code::kInvalid);
  EXPECT_TRUE(Shown(*Make(9), Of({{1, 10, 1}}), Form::kText).ok());
}

TEST(ObfuscateTest, TagsWithOneKeyArePermutedDifferently) {
  std::set<int64_t> shown;
  for (const std::string_view tag : {"order", "user", "", "Order"}) {
    shown.insert(*Make(12, tag)->Hide(12'345));
  }
  EXPECT_EQ(shown.size(), 4u);
}

TEST(ObfuscateTest, RefusesKeysOfOtherSizes) {
  for (const size_t bytes : {size_t{0}, size_t{15}, size_t{17}, size_t{33}}) {
    EXPECT_EQ(MakeAes(SecretKey(std::vector<uint8_t>(bytes, 1))).code(), Code::kInternal);
  }
  for (const size_t bytes : {size_t{16}, size_t{24}, size_t{32}}) {
    EXPECT_TRUE(MakeAes(SecretKey(std::vector<uint8_t>(bytes, 1))).ok());
  }
}

TEST(ObfuscateTest, RefusesWidthsOutsideTheRange) {
  EXPECT_EQ(ObfuscatePlugin::Make(Cipher(), "t", 5).code(), Code::kInvalid);
  EXPECT_EQ(ObfuscatePlugin::Make(Cipher(), "t", 20).code(), Code::kInvalid);
}

TEST(ObfuscateTest, ManyThreadsShareOneKey) {
  const auto plugin = Make(9);
  std::vector<int64_t> expected;
  for (int64_t id = 0; id < 500; ++id) expected.push_back(*plugin->Hide(id));
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 80; ++t) {  // more threads than the library has contexts
    threads.emplace_back([&] {
      for (int64_t id = 0; id < 500; ++id) {
        const Result<int64_t> shown = plugin->Hide(id);
        if (!shown.ok() || *shown != expected[static_cast<size_t>(id)]) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace firn
