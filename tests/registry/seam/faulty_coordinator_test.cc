#include "tests/support/registry/faulty_coordinator.h"

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using Kind = SessionEvent::Kind;

class FaultyCoordinatorTest : public testing::Test {
 protected:
  FaultyCoordinatorTest() {
    faulty.OnSession([this](SessionEvent event) { events.push_back(event); });
    faulty.Dispatch({});
    faulty.Multi({Write::Create("/", "0", Lifetime::kPersistent)}, [](const WriteOutcome&) {});
    faulty.Dispatch({});
    events.clear();
  }

  // Sends a write of the root; `codes` collects the answers.
  void Set(const std::string& data, Fate fate) {
    faulty.Script(Verb::kMulti, fate);
    faulty.Multi({Write::Set("/", data, Write::kAnyVersion)},
                 [this](const WriteOutcome& o) { codes.push_back(o.status.code()); });
  }
  void Read(Fate fate) {
    faulty.Script(Verb::kRead, fate);
    faulty.Read(
        "/", [this](const Result<Node>& node) { codes.push_back(node.code()); },
        [this] { ++notices; });
  }
  // Advances the time and delivers everything that is due.
  void Pass(int ms) {
    clock.Advance(Milliseconds(ms));
    faulty.Dispatch({});
  }
  std::string Data() const { return tree.Peek("/")->data; }

  VirtualClock clock{WallMs(1'000'000)};
  MemoryTree tree{clock};
  FaultyCoordinator faulty{std::make_unique<MemoryCoordinator>(tree), clock};
  std::vector<SessionEvent> events;
  std::vector<Code> codes;
  int notices = 0;
};

TEST_F(FaultyCoordinatorTest, ALostRequestIsUnknownAndNotApplied) {
  Set("1", {Fate::Kind::kRequestLost, {}, Milliseconds(50)});
  Pass(49);
  EXPECT_TRUE(codes.empty());
  Pass(1);
  EXPECT_EQ(codes, std::vector{Code::kUnknown});
  EXPECT_EQ(Data(), "0");
}

TEST_F(FaultyCoordinatorTest, ALostAnswerIsUnknownAndApplied) {
  Set("1", {Fate::Kind::kAnswerLost, {}, Milliseconds(50)});
  EXPECT_EQ(Data(), "1");
  Pass(50);
  EXPECT_EQ(codes, std::vector{Code::kUnknown});
}

TEST_F(FaultyCoordinatorTest, ARefusedRequestIsKnownAndNotApplied) {
  Set("1", {Fate::Kind::kRefused});
  Pass(0);
  EXPECT_EQ(codes, std::vector{Code::kUnavailable});
  EXPECT_EQ(Data(), "0");
}

TEST_F(FaultyCoordinatorTest, ALateWriteArrivesAfterItsAnswerAndAfterItsSuccessor) {
  Set("late", {Fate::Kind::kLate, Milliseconds(80), Milliseconds(50)});
  Pass(50);
  EXPECT_EQ(codes, std::vector{Code::kUnknown});
  Set("next", {});
  Pass(0);
  EXPECT_EQ(Data(), "next");
  Pass(30);
  EXPECT_EQ(Data(), "late");
  EXPECT_EQ(codes, (std::vector{Code::kUnknown, Code::kOk}));
}

TEST_F(FaultyCoordinatorTest, ALateWriteOutlivesItsCallerButNotItsSession) {
  Set("late", {Fate::Kind::kLate, Milliseconds(80), Milliseconds(50)});
  Set("never", {Fate::Kind::kLate, Milliseconds(200), Milliseconds(50)});
  faulty.Orphan();
  Pass(80);
  EXPECT_EQ(Data(), "late");
  tree.Expire(faulty.session());
  Pass(120);
  EXPECT_EQ(Data(), "late");
  EXPECT_TRUE(codes.empty());
}

TEST_F(FaultyCoordinatorTest, DelaysKeepTheOrderOfTheWrites) {
  Set("1", {Fate::Kind::kDone, Milliseconds(100)});
  Set("2", {});
  Pass(99);
  EXPECT_EQ(Data(), "0");
  Pass(1);
  EXPECT_EQ(Data(), "2");
  EXPECT_EQ(codes.size(), 2u);
}

TEST_F(FaultyCoordinatorTest, AWriteWithADelayedAnswerIsAppliedMeanwhile) {
  Set("1", {Fate::Kind::kDone, {}, Milliseconds(10)});
  Pass(0);
  EXPECT_EQ(Data(), "1");
  EXPECT_TRUE(codes.empty());
  EXPECT_EQ(faulty.NextDue(), clock.Boot() + Milliseconds(10));
  Pass(10);
  EXPECT_EQ(codes, std::vector{Code::kOk});
  EXPECT_EQ(faulty.NextDue(), std::nullopt);
}

TEST_F(FaultyCoordinatorTest, AReadThatIsLostIsUnavailableAndLeavesNoWatch) {
  Read({Fate::Kind::kAnswerLost, {}, Milliseconds(5)});
  Read({Fate::Kind::kRequestLost, {}, Milliseconds(5)});
  Read({Fate::Kind::kLate, Milliseconds(9), Milliseconds(5)});
  Pass(5);
  EXPECT_EQ(codes, std::vector(3, Code::kUnavailable));
  Set("1", {});
  Pass(10);
  EXPECT_EQ(notices, 0);
}

TEST_F(FaultyCoordinatorTest, ANotificationIsLostOrFollowsItsAnswer) {
  Read({Fate::Kind::kDone, {}, {}, true});
  Read({Fate::Kind::kDone, {}, Milliseconds(20)});
  Pass(0);
  Set("1", {});
  Pass(0);
  EXPECT_EQ(notices, 0);
  Pass(20);
  Pass(0);
  EXPECT_EQ(codes.size(), 3u);
  EXPECT_EQ(notices, 1);
}

TEST_F(FaultyCoordinatorTest, ADisconnectionAnswersAllPendingRequests) {
  Set("done", {Fate::Kind::kDone, {}, Milliseconds(50)});
  Set("not done", {Fate::Kind::kDone, Milliseconds(50)});
  Read({Fate::Kind::kDone, Milliseconds(50)});
  faulty.Disconnect();
  Set("refused", {});
  Pass(0);
  EXPECT_EQ(codes,
            (std::vector{Code::kUnknown, Code::kUnknown, Code::kUnavailable, Code::kUnavailable}));
  EXPECT_EQ(events, (std::vector<SessionEvent>{{Kind::kDisconnected}}));
  Pass(100);
  EXPECT_EQ(Data(), "done");
}

TEST_F(FaultyCoordinatorTest, AShortDisconnectionKeepsTheSession) {
  const int64_t session = faulty.session();
  faulty.Disconnect();
  Pass(0);
  faulty.Reconnect();
  Pass(0);
  EXPECT_EQ(events,
            (std::vector<SessionEvent>{{Kind::kDisconnected}, {Kind::kConnected, session}}));
}

TEST_F(FaultyCoordinatorTest, AnExpiryIsReportedAfterTheDisconnection) {
  faulty.Disconnect();
  tree.Expire(faulty.session());
  Pass(0);
  EXPECT_EQ(events.size(), 1u);
  faulty.Reconnect();
  Pass(0);
  EXPECT_EQ(events,
            (std::vector<SessionEvent>{
                {Kind::kDisconnected}, {Kind::kExpired}, {Kind::kConnected, faulty.session()}}));
}

// As with ZooKeeper's client, no request of an ended session reaches the server in the next
// session.
TEST_F(FaultyCoordinatorTest, AnExpiryAnswersAllPendingRequests) {
  Set("done", {Fate::Kind::kDone, {}, Milliseconds(50)});
  Set("not done", {Fate::Kind::kDone, Milliseconds(50)});
  Read({Fate::Kind::kDone, Milliseconds(50)});
  tree.Expire(faulty.session());
  Pass(0);
  EXPECT_EQ(codes, (std::vector{Code::kUnknown, Code::kUnknown, Code::kUnavailable}));
  EXPECT_EQ(events,
            (std::vector<SessionEvent>{{Kind::kExpired}, {Kind::kConnected, faulty.session()}}));
  Pass(100);
  EXPECT_EQ(Data(), "done");
  Set("next", {});
  Pass(0);
  EXPECT_EQ(Data(), "next");
}

TEST_F(FaultyCoordinatorTest, ASeedReproducesItsFaults) {
  const FaultRates rates{.refused = 100,
                         .request_lost = 100,
                         .answer_lost = 100,
                         .late = 100,
                         .delayed = 300,
                         .notice_lost = 100,
                         .delay_max = Milliseconds(20),
                         .late_max = Milliseconds(500),
                         .time_limit = Milliseconds(100)};
  const auto draw = [&rates](uint64_t seed) {
    SeededEntropy entropy(seed);
    const FaultPlan plan = SeededFaults(entropy, rates);
    std::vector<std::pair<Fate::Kind, int64_t>> fates;
    for (int i = 0; i < 1000; ++i) {
      const Fate fate = plan(Verb::kMulti);
      fates.emplace_back(fate.kind, fate.apply_after.count());
      if (fate.kind == Fate::Kind::kLate) {
        EXPECT_GE(fate.apply_after, fate.answer_after);
      }
    }
    return fates;
  };
  EXPECT_EQ(draw(1), draw(1));
  EXPECT_NE(draw(1), draw(2));
}

}  // namespace
}  // namespace firn
