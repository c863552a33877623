#include "tests/support/registry/memory_coordinator.h"

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using Kind = SessionEvent::Kind;

// One client of the tree and the events that it received.
class Client {
 public:
  explicit Client(MemoryTree& tree) : coordinator(std::make_unique<MemoryCoordinator>(tree)) {
    coordinator->OnSession([this](SessionEvent event) { events.push_back(event); });
    coordinator->Dispatch({});
  }

  WriteOutcome Do(std::vector<Write> writes) {
    std::optional<WriteOutcome> got;
    coordinator->Multi(std::move(writes), [&](WriteOutcome outcome) { got = std::move(outcome); });
    coordinator->Dispatch({});
    return *got;
  }
  Result<Node> Read(const std::string& path) {
    std::optional<Result<Node>> got;
    coordinator->Read(
        path, [&](Result<Node> node) { got = std::move(node); }, [&] { ++notices; });
    coordinator->Dispatch({});
    return *got;
  }

  std::unique_ptr<MemoryCoordinator> coordinator;
  std::vector<SessionEvent> events;
  int notices = 0;
};

class MemoryCoordinatorTest : public testing::Test {
 protected:
  MemoryCoordinatorTest() { a.Do({Write::Create("/", "meta", Lifetime::kPersistent)}); }

  VirtualClock clock{WallMs(1000)};
  MemoryTree tree{clock};
  Client a{tree};
  Client b{tree};
};

TEST_F(MemoryCoordinatorTest, StampsWithTheGivenClock) {
  clock.Advance(Milliseconds(777));
  EXPECT_EQ(a.Do({Write::Set("/", "x", 0)}).stats[0].modified, WallMs(1777));
}

TEST_F(MemoryCoordinatorTest, AnExpiredSessionLosesItsNodesAndIsReplaced) {
  const int64_t old_session = a.coordinator->session();
  a.Do({Write::Create("/live", "", Lifetime::kEphemeral)});
  ASSERT_TRUE(b.Read("/live").ok());
  tree.Expire(old_session);
  b.coordinator->Dispatch({});
  EXPECT_EQ(b.notices, 1);
  EXPECT_EQ(b.Read("/live").code(), Code::kNotFound);
  a.coordinator->Dispatch({});
  ASSERT_EQ(a.events.size(), 3u);
  EXPECT_EQ(a.events[1].kind, Kind::kExpired);
  EXPECT_EQ(a.events[2], (SessionEvent{Kind::kConnected, a.coordinator->session()}));
  EXPECT_NE(a.coordinator->session(), old_session);
}

TEST_F(MemoryCoordinatorTest, WritesNothingInASessionUnknownToItsOwner) {
  tree.Expire(a.coordinator->session());
  EXPECT_EQ(a.Do({Write::Set("/", "x", 0)}).status.code(), Code::kUnavailable);
  EXPECT_EQ(tree.Peek("/")->data, "meta");
  EXPECT_TRUE(a.Do({Write::Set("/", "x", 0)}).status.ok());
}

TEST_F(MemoryCoordinatorTest, AnAbandonedSessionLastsUntilItExpires) {
  const int64_t session = a.coordinator->session();
  a.Do({Write::Create("/live", "", Lifetime::kEphemeral)});
  a.coordinator->Abandon();
  a.coordinator.reset();
  EXPECT_TRUE(b.Read("/live").ok());
  tree.Expire(session);
  EXPECT_EQ(b.Read("/live").code(), Code::kNotFound);
}

TEST_F(MemoryCoordinatorTest, ARestoredTreeRepeatsItsVersionsAndEndsEverySession) {
  const MemoryTree::Image image = tree.Save();
  const NodeStat first = a.Do({Write::Create("/x", "1", Lifetime::kPersistent)}).stats[0];
  tree.Load(image);
  a.coordinator->Dispatch({});
  EXPECT_EQ(a.events.back().kind, Kind::kConnected);
  EXPECT_EQ(a.events.size(), 3u);
  const NodeStat second = a.Do({Write::Create("/x", "2", Lifetime::kPersistent)}).stats[0];
  EXPECT_EQ(first.created_zxid, second.created_zxid);
  tree.Wipe();
  EXPECT_FALSE(tree.Peek("/").has_value());
}

}  // namespace
}  // namespace firn
