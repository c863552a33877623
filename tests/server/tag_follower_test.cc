#include "server/tag_follower.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "registry/blocking_coordinator.h"
#include "registry/cluster_setup.h"
#include "registry/memory_coordinator.h"
#include "registry/tag_store.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

// Gives 1, 2, 3, ...
class Counting final : public Strategy {
 public:
  std::string_view name() const override { return "counting"; }
  Status Start() override { return {}; }
  bool TryOne(Method, int64_t* id) override { return *id = ++last_, true; }
  Verdict Issue(Demand& demand) override {
    demand.runs.Add({last_ + 1, demand.missing, 1});
    last_ += std::exchange(demand.missing, 0);
    return Verdict::kIssued;
  }
  int64_t count_max() const override { return 1000; }
  void Close() override {}
  void Stop() override {}

 private:
  int64_t last_ = 0;
};

class Deaf final : public RejectionHandler {
  void OnRefusal(const Request&, const Refusal&) override {}
};

// An operator who edits tags, and a server that follows.
class TagFollowerTest : public testing::Test {
 protected:
  TagFollowerTest() {
    EXPECT_TRUE(operator_.Connect(Milliseconds(1000)).ok());
    EXPECT_TRUE(MakeCluster(operator_, {}, entropy_).ok());
    const auto make = [this](const TagDefinition&) -> Result<std::shared_ptr<Strategy>> {
      ++made_;
      return std::shared_ptr<Strategy>(std::make_shared<Counting>());
    };
    EXPECT_TRUE(catalogue_.AddStrategy("snowflake", make).ok());
    EXPECT_TRUE(catalogue_.AddStrategy("segment", make).ok());
    server_.OnSession([](SessionEvent) {});
    follower_ = std::make_unique<TagFollower>(server_, entropy_, catalogue_, issuer_);
  }

  void Pass(Milliseconds d) {
    for (Milliseconds passed{0}; passed <= d; passed += Milliseconds(50)) {
      clock_.Advance(Milliseconds(50));
      while (server_.Dispatch(Milliseconds(0)) > 0) {
      }
      follower_->Tick(clock_.Boot());
      while (server_.Dispatch(Milliseconds(0)) > 0) {
      }
    }
  }

  static TagDefinition Tag(const std::string& name, const std::string& strategy) {
    TagDefinition tag;
    tag.name = name;
    tag.strategy = strategy;
    return tag;
  }

  void Edit(const std::string& name, const std::function<void(TagDefinition&)>& edit) {
    const StoredTag stored = *store_.Read(name);
    TagDefinition after = stored.tag();
    edit(after);
    EXPECT_TRUE(store_.Replace(stored, after).ok());
  }

  // "issued", or the refusal's sentence.
  std::string Ask(const std::string& name) {
    const firn::Tag* tag = issuer_.Resolve(name);
    if (tag == nullptr) return "unknown";
    IssueCall call(*tag, {.tag = name});
    return issuer_.Issue(call) == Verdict::kIssued ? "issued" : call.refusal().message;
  }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  SeededEntropy entropy_{5};
  MemoryTree tree_{clock_};
  MemoryCoordinator operators_{tree_};
  MemoryCoordinator server_{tree_};
  BlockingCoordinator operator_{operators_, clock_};
  TagStore store_{operator_};
  Deaf deaf_;
  Issuer issuer_{deaf_};
  Catalogue catalogue_;
  int made_ = 0;
  std::unique_ptr<TagFollower> follower_;
};

TEST_F(TagFollowerTest, ServesATagAsSoonAsItIsDefined) {
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "unknown");
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
}

TEST_F(TagFollowerTest, ADisabledTagIsRefusedUntilItIsEnabled) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  Edit("order", [](TagDefinition& tag) { tag.disabled = true; });
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("order").find("disabled"), std::string::npos);
  Edit("order", [](TagDefinition& tag) { tag.disabled = false; });
  Pass(Milliseconds(200));
  EXPECT_EQ(Ask("order"), "issued");
}

TEST_F(TagFollowerTest, ATagWhosePluginIsMissingHereIsRefused) {
  TagDefinition tag = Tag("order", "snowflake");
  tag.plugins = {"seal"};
  ASSERT_TRUE(store_.Create(tag).ok());
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("order").find("seal"), std::string::npos);
}

TEST_F(TagFollowerTest, AMovedLedgerIsNoticedAndChangesNothing) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  Pass(Milliseconds(200));
  const int made = made_;
  StoredTag stored = *store_.Read("order");
  stored.node.tag.high = 5001;
  ASSERT_TRUE(
      operator_
          .Multi({Write::Set(TagPath("order"), *WriteTagNode(stored.node), stored.stat.version)})
          .status.ok());
  Pass(Milliseconds(200));
  EXPECT_EQ(made_, made);
  EXPECT_EQ(follower_->highest()->at("order"), 5001);
}

TEST_F(TagFollowerTest, AVanishedOrTornNodeStopsTheTag) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  ASSERT_TRUE(store_.Create(Tag("user", "segment")).ok());
  Pass(Milliseconds(200));
  ASSERT_TRUE(operator_
                  .Multi({Write::Erase(TagPath("order"), Write::kAnyVersion),
                          Write::Set(TagPath("user"), "{", Write::kAnyVersion)})
                  .status.ok());
  Pass(Milliseconds(200));
  EXPECT_NE(Ask("order").find("gone"), std::string::npos);
  EXPECT_NE(Ask("user"), "issued");
}

}  // namespace
}  // namespace firn
