#include "registry/seam/watch_table.h"

#include <gtest/gtest.h>

namespace firn {
namespace {

constexpr WatchKind kNode = WatchKind::kNode;

TEST(WatchTableTest, WatchesOfANodeFireTogetherAndOnce) {
  WatchTable table;
  const WatchTable::Id id = table.IdOf(kNode, "/x");
  table.Add(id, kNode, "/x", [] {});
  table.Add(table.IdOf(kNode, "/x"), kNode, "/x", [] {});
  EXPECT_EQ(table.Fire(WatchKind::kChildren, "/x").size(), 0u);
  EXPECT_EQ(table.Fire(id).size(), 2u);
  EXPECT_EQ(table.Fire(id).size(), 0u);
  EXPECT_TRUE(table.empty());
}

TEST(WatchTableTest, ANotificationOfAnEarlierWatchKeepsALaterOne) {
  WatchTable table;
  table.Add(table.IdOf(kNode, "/x"), kNode, "/x", [] {});
  const WatchTable::Id asked = table.IdOf(kNode, "/x");  // the server gets another request,
  EXPECT_EQ(table.Fire(asked).size(), 1u);               // reports the first watch meanwhile,
  table.Add(asked, kNode, "/x", [] {});                  // answers
  EXPECT_EQ(table.Fire(asked).size(), 1u);               // and reports the second
}

TEST(WatchTableTest, KeepsTheLastOfMany) {
  WatchTable table;
  int last = 0;
  for (int i = 1; i <= 20; ++i) {
    table.Add(table.IdOf(kNode, "/x"), kNode, "/x", [&last, i] { last = i; });
  }
  const WatchTable::Fired fired = table.FireAll();
  EXPECT_EQ(fired.size(), Coordinator::kWatchesMax);
  fired.back()();
  EXPECT_EQ(last, 20);
}

}  // namespace
}  // namespace firn
