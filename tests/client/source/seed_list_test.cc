#include "client/source/seed_list.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace firn::client {
namespace {

using Names = std::vector<std::string>;

std::vector<KnownServer> Servers(const Names& names) {
  std::vector<KnownServer> servers;
  for (const std::string& name : names) servers.push_back({.address = name});
  return servers;
}

ToldServers Told(int64_t version, const Names& names, Milliseconds age = Milliseconds(0)) {
  return {.version = version, .list = ServerList{.servers = Servers(names)}, .age = age};
}

class SeedListTest : public testing::Test {
 protected:
  static constexpr Micros kNow{1'000'000'000};

  Names Shown() const {
    Names names;
    for (const KnownServer& server : list_.list().servers) names.push_back(server.address);
    return names;
  }

  SeedList list_{Servers({"seed:1", "seed:2"})};
};

TEST_F(SeedListTest, StartsWithItsSeedsAndThenUsesAServersList) {
  EXPECT_EQ(Shown(), (Names{"seed:1", "seed:2"}));
  EXPECT_TRUE(list_.Hear(Told(7, {"a:1", "b:1"}), kNow));
  EXPECT_EQ(Shown(), (Names{"a:1", "b:1"}));
  EXPECT_EQ(list_.version(), 7);
  EXPECT_FALSE(list_.Hear({.version = 7}, kNow)) << "still that one";
  EXPECT_EQ(Shown(), (Names{"a:1", "b:1"}));
  EXPECT_TRUE(list_.Hear(Told(8, {"b:1"}), kNow));
  EXPECT_EQ(Shown(), Names{"b:1"});
}

TEST_F(SeedListTest, IgnoresAnOlderListOfAServerThatIsBehind) {
  ASSERT_TRUE(list_.Hear(Told(9, {"a:1"}), kNow));
  EXPECT_FALSE(list_.Hear(Told(8, {"old:1"}), kNow + Micros(1'000'000)));
  const Micros later = kNow + SeedList::kPutBackAfter * 10;
  const auto since_taken = std::chrono::duration_cast<Milliseconds>(later - kNow);
  EXPECT_FALSE(list_.Hear(Told(8, {"old:1"}, since_taken), later))
      << "the registry has not confirmed it";
  EXPECT_EQ(Shown(), Names{"a:1"});
}

TEST_F(SeedListTest, UsesAnOlderListThatTheRegistryConfirmedLater) {
  ASSERT_TRUE(list_.Hear(Told(9, {"a:1"}), kNow));
  const Micros later = kNow + SeedList::kPutBackAfter + Micros(2'000'000);
  EXPECT_TRUE(list_.Hear(Told(8, {"restored:1"}, Milliseconds(1'000)), later));
  EXPECT_EQ(Shown(), Names{"restored:1"});
  EXPECT_EQ(list_.version(), 8);
}

TEST_F(SeedListTest, UsesAnOlderListIfNoListedServerAnswers) {
  ASSERT_TRUE(list_.Hear(Told(9, {"a:1"}), kNow));
  list_.OnNoAnswer();
  EXPECT_TRUE(list_.Hear(Told(8, {"b:1"}, Milliseconds(600'000)), kNow));
  EXPECT_EQ(Shown(), Names{"b:1"});
}

TEST_F(SeedListTest, AddsTheSeedsWhileNoServerAnswers) {
  ASSERT_TRUE(list_.Hear(Told(9, {"a:1", "seed:2"}), kNow));
  list_.OnNoAnswer();
  EXPECT_EQ(Shown(), (Names{"a:1", "seed:2", "seed:1"}));
  list_.OnNoAnswer();
  EXPECT_EQ(Shown(), (Names{"a:1", "seed:2", "seed:1"})) << "each once";
  EXPECT_FALSE(list_.Hear({.version = 9}, kNow));
  EXPECT_EQ(Shown(), (Names{"a:1", "seed:2"})) << "one of them has answered";
}

TEST_F(SeedListTest, NeverUsesAnEmptyList) {
  ASSERT_TRUE(list_.Hear(Told(9, {"a:1"}), kNow));
  EXPECT_FALSE(list_.Hear(Told(10, {}), kNow));
  EXPECT_FALSE(list_.Hear({.version = 11}, kNow)) << "nor one without entries";
  EXPECT_FALSE(list_.Hear(Told(0, {"b:1"}), kNow)) << "nor an empty one";
  EXPECT_EQ(Shown(), Names{"a:1"});
  EXPECT_EQ(list_.version(), 9);
}

TEST_F(SeedListTest, StartsWithACachedList) {
  list_.Begin({.servers = Servers({"kept:1"}), .from_cache = true});
  EXPECT_EQ(Shown(), Names{"kept:1"});
  list_.OnNoAnswer();
  EXPECT_EQ(Shown(), (Names{"kept:1", "seed:1", "seed:2"}));
  EXPECT_TRUE(list_.Hear(Told(1, {"a:1"}), kNow));
  EXPECT_EQ(Shown(), Names{"a:1"});
  EXPECT_FALSE(list_.list().from_cache);
}

}  // namespace
}  // namespace firn::client
