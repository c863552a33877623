// Definitions that a server reads while the registry loses data.

#include <functional>
#include <memory>
#include <string>

#include "tests/server/node/tag_follower_rig.h"
#include "tests/support/registry/forwarding_coordinator.h"

namespace firn {
namespace {

class TagStartTest : public TagFollowerRig {};

// Holds the request for the list of tags back.
class LateList final : public ForwardingCoordinator {
 public:
  explicit LateList(Coordinator& inner) : ForwardingCoordinator(inner) {}
  void List(const std::string& path, ListDone done, Changed changed) override {
    send = [this, path, done, changed] { inner().List(path, done, changed); };
  }

  std::function<void()> send{};
};

TEST_F(TagStartTest, TakesNoEmptyFolderForTheTagsOfAStart) {
  LateList registry(server_);
  memory_.files.clear();
  issuer_ = std::make_unique<Issuer>(deaf_);
  follower_ =
      std::make_unique<TagFollower>(registry, entropy_, catalogue_, *issuer_, UuidOf(), &memory_);
  Pass(Milliseconds(300));  // reads the root node
  tree_.Wipe();
  ASSERT_TRUE(registry.send);
  registry.send();
  Pass(Milliseconds(3'000));
  EXPECT_FALSE(follower_->whole());
  EXPECT_NE(Ask("default").find("has not read"), std::string::npos) << Ask("default");
  follower_.reset();
}

// The older tree contains the tag as it was before its deletion.
TEST_F(TagStartTest, TakesNoDeletedTagFromAnOlderTree) {
  ASSERT_TRUE(store_.Create(Tag("order", "segment")).ok());
  const MemoryTree::Image older = tree_.Save();
  const std::string uuid = UuidOf();
  MetaAsRead meta = *ReadMeta(operator_);
  meta.meta.reason = "edited since";
  ASSERT_TRUE(SetMeta(operator_, meta).ok());
  Pass(Milliseconds(200));
  ASSERT_TRUE(store_.Delete("order").ok());
  Pass(Milliseconds(200));
  ASSERT_EQ(Ask("order"), "unknown");
  const int made = made_;
  tree_.Load(older);
  Pass(Milliseconds(3'000));
  EXPECT_NE(follower_->root_trouble().find("older"), std::string::npos);
  EXPECT_EQ(made_, made) << "the tag is served";
  EXPECT_EQ(memory_.files[uuid].find("order"), std::string::npos) << memory_.files[uuid];
}

}  // namespace
}  // namespace firn
