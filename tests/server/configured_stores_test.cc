#include "server/configured_stores.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>

#include "tests/server/node/segment_tags_rig.h"
#include "tests/support/database/redis.h"

namespace firn {
namespace {

// Nodes with the stores `cache`, in a real Redis, and `fast`, the same Redis in front of the
// registry.
class ConfiguredStoresTest : public SegmentTagsRig {
 protected:
  void SetUp() override {
    auto started = Redis::Start({.append_only = false});
    ASSERT_TRUE(started.ok()) << started.status();
    redis_ = *std::move(started);
  }

  std::unique_ptr<IssuingNode> StartWithStores(int port = 7609) {
    auto node = Make(port);
    const StoresIni ini = ParseStoresIni("[cache]\nkind = redis\naddress = " + redis_->address() +
                                         "\n[fast]\nkind = tiered\nfront = cache\n");
    EXPECT_TRUE(ini.status().ok()) << ini.status();
    const Status added = AddStores(ini, node->segments(), SystemClock(), SystemEntropy());
    EXPECT_TRUE(added.ok()) << added;
    EXPECT_TRUE(node->Start().ok());
    EXPECT_TRUE(node->WaitUntilServing(kTagPatience).ok());
    return node;
  }
  // Takes a number, repeating until there is one.
  static int64_t TakeSurely(IssuingNode& node) {
    int64_t id = -1;
    EXPECT_TRUE(Eventually(kTagPatience, [&] { return (id = Take(node)) > 0; })) << refused_;
    return id;
  }

  // The store that gives the tag's numbers at this node; null: not known yet.
  static const Strategy* Server(IssuingNode& node) {
    const Tag* const tag = node.issuer().Resolve("order");
    const Binding* const binding = tag != nullptr ? tag->binding() : nullptr;
    return binding != nullptr ? binding->strategy.get() : nullptr;
  }

  std::unique_ptr<Redis> redis_;
};

TEST_F(ConfiguredStoresTest, TieredNumbersRiseOverAllNodes) {
  Create({.name = "order", .strategy = {}, .store = "fast", .step = 7, .buffer = TagBuffer::kNone});
  const auto one = StartWithStores(1), two = StartWithStores(2);
  int64_t last = 0;
  for (int i = 0; i < 50; ++i) {
    for (IssuingNode* node : {one.get(), two.get()}) {
      const int64_t id = TakeSurely(*node);
      ASSERT_GT(id, last);
      last = id;
    }
  }
  EXPECT_LT(last, High("order"));
}

TEST_F(ConfiguredStoresTest, ATieredTagWhoseLedgerFellIsStoppedUntilARestore) {
  Create({.name = "order", .strategy = {}, .store = "fast", .buffer = TagBuffer::kNone});
  const auto node = StartWithStores();
  const int64_t before = TakeSurely(*node);
  StoredTag stored = *store_.Read("order");
  const int64_t high = stored.node.tag.high;
  stored.node.tag.high = 5;
  ASSERT_TRUE(
      operator_
          .Multi({Write::Set(TagPath("order"), *WriteTagNode(stored.node), stored.stat.version)})
          .status.ok());
  ASSERT_TRUE(Eventually(kTagPatience, [&] { return ReadMeta(operator_)->meta.frozen; }));
  EXPECT_TRUE(Refuses(*node, Reason::kStoreDown));
  for (int i = 0; i < 5; ++i) EXPECT_EQ(Take(*node, "order", Milliseconds(20)), -1);
  // The steps of `firn restore` for this tag.
  ASSERT_TRUE(store_.Lift(*store_.Read("order"), high).ok());
  int64_t after = -1;
  EXPECT_TRUE(Eventually(kTagPatience, [&] {
    // Repeated, in case the node froze it again because of a reading before the restore.
    if (ReadMeta(operator_)->meta.frozen) Thaw();
    return (after = Take(*node, "order", Milliseconds(500))) > 0;
  })) << refused_;
  EXPECT_GE(after, high) << "no number that was in Redis, after " << before;
}

TEST_F(ConfiguredStoresTest, NoNumberRepeatsFromRedisToTieredAndBackUnderLoad) {
  Create({.name = "order", .strategy = {}, .store = "cache", .step = 5, .step_max = 20});
  const auto one = StartWithStores(1), two = StartWithStores(2);
  std::mutex mutex;
  std::set<int64_t> all;
  std::atomic<int> twice{0};
  std::atomic<bool> going_on{true};
  const auto taken = [&] {
    const std::scoped_lock lock(mutex);
    return all.size();
  };
  std::vector<std::jthread> threads;
  for (IssuingNode* node : {one.get(), two.get()}) {
    threads.emplace_back([&, node] {
      while (going_on) {
        const int64_t id = Take(*node, "order", Milliseconds(100));
        const std::scoped_lock lock(mutex);
        if (id > 0 && !all.insert(id).second) ++twice;
      }
    });
  }
  EXPECT_TRUE(Eventually(kTagPatience, [&] { return Server(*one) && Server(*two); }));
  for (const char* store : {"fast", "cache", "fast", "cache"}) {
    const Strategy* const old_one = Server(*one);
    const Strategy* const old_two = Server(*two);
    Edit("order", [&](TagDefinition& tag) { tag.store = store; });
    EXPECT_TRUE(Eventually(kTagPatience, [&] {  // until the edit has been read
      return Server(*one) != old_one && Server(*two) != old_two;
    })) << store;
    const size_t before = taken();
    EXPECT_TRUE(Eventually(kTagPatience, [&] { return taken() >= before + 100; })) << store;
  }
  going_on = false;
  threads.clear();
  EXPECT_EQ(twice, 0);
  EXPECT_LT(*all.rbegin(), High("order"));
  EXPECT_TRUE(redis_->Run({"HGET", "firn:order:tiered", "cluster"}).value_or("") != "");
}

}  // namespace
}  // namespace firn
