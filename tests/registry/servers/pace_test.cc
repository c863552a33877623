// What servers say of what they have done of late.

#include "registry/servers/pace.h"

#include <optional>

#include <gtest/gtest.h>

#include "registry/operate/audit.h"
#include "registry/servers/pace_publisher.h"
#include "tests/support/registry/memory_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

const ServerPace kSome{
    .over = Milliseconds(5'000), .ids = 70, .calls = 9, .refused = 2, .p99_us = 64};

TEST(ServerPaceTest, JsonGivesItBack) {
  EXPECT_EQ(*ParsePace(FormatPace(kSome)), kSome);
  const ServerPace idle{.over = Milliseconds(5'000)};
  EXPECT_EQ(*ParsePace(FormatPace(idle)), idle);
}

TEST(ServerPaceTest, WhatIsNoPaceIsRefused) {
  for (const char* text :
       {"", "{}", R"({"over_ms":0,"ids":1,"calls":1,"refused":0})",
        R"({"over_ms":5,"ids":-1,"calls":1,"refused":0})", R"({"over_ms":5,"ids":1,"calls":1})"}) {
    EXPECT_FALSE(ParsePace(text).ok()) << text;
  }
}

class PacePublisherTest : public testing::Test {
 protected:
  PacePublisherTest() {
    server_.OnSession([](SessionEvent) {});
    server_.Multi({Write::Create("/", "{}", Lifetime::kPersistent)},
                  [](const WriteOutcome& outcome) { ASSERT_TRUE(outcome.status.ok()); });
    Pass(Milliseconds(0));
  }
  void Pass(Milliseconds d) {
    const BootMs until = clock_.Boot() + d;
    do {
      clock_.Advance(Milliseconds(50));
      if (publisher_.IsDue(clock_.Boot())) publisher_.Tell(pace_, clock_.Boot());
      while (server_.Dispatch(Milliseconds(0)) > 0) {
      }
    } while (clock_.Boot() < until);
  }
  std::optional<Node> Stands() { return tree_.Peek(PacePath("h:1")); }

  VirtualClock clock_{WallMs(1'700'000'000'000)};
  MemoryTree tree_{clock_};
  MemoryCoordinator server_{tree_};
  PacePublisher publisher_{server_, "h:1"};
  ServerPace pace_ = kSome;
};

TEST_F(PacePublisherTest, SaysNothingBeforeItHasDoneAnythingForAWhile) {
  Pass(PacePublisher::kEvery - Milliseconds(100));
  EXPECT_FALSE(Stands());
  Pass(Milliseconds(200));
  ASSERT_TRUE(Stands());
  EXPECT_EQ(*ParsePace(Stands()->data), pace_);
}

TEST_F(PacePublisherTest, WhoeverIsIdleSaysSoAgainAndAgain) {
  Pass(PacePublisher::kEvery * 2);
  ASSERT_TRUE(Stands());
  const WallMs before = Stands()->stat.modified;
  Pass(PacePublisher::kEvery + Milliseconds(100));
  EXPECT_GE(Stands()->stat.modified - before, PacePublisher::kEvery);
}

TEST_F(PacePublisherTest, WhatItSaysGoesWithItsSessionAndComesBackWithTheNext) {
  Pass(PacePublisher::kEvery * 2);
  tree_.Expire(server_.session());
  EXPECT_FALSE(Stands());
  Pass(PacePublisher::kEvery * 3);
  ASSERT_TRUE(Stands());
  EXPECT_EQ(Stands()->stat.ephemeral_owner, server_.session());
}

class ReadPacesTest : public PacePublisherTest {
 protected:
  void Announce(const std::string& address, const std::string& pace) {
    for (const std::string_view path : {kServicePath, kPacesPath}) {
      blocking_.Multi({Write::Create(std::string(path), "", Lifetime::kPersistent)});
    }
    audit_.providers.push_back({.provider = {.address = address}, .report = {}});
    if (pace.empty()) return;
    ASSERT_TRUE(blocking_.Multi({Write::Create(PacePath(address), pace, Lifetime::kPersistent)})
                    .status.ok());
  }

  MemoryCoordinator operator_{tree_};
  BlockingCoordinator blocking_{operator_, clock_};
  Audit audit_;
};

TEST_F(ReadPacesTest, ASilentServersWordAgesAndOneThatHasSaidNothingHasNone) {
  ASSERT_TRUE(blocking_.Connect(Milliseconds(0)).ok());
  Announce("silent:1", FormatPace(kSome));
  Announce("new:1", "");
  Announce("strange:1", "[]");
  clock_.Advance(Milliseconds(7'000));
  Announce("serves:1", FormatPace(kSome));
  ASSERT_TRUE(ReadPaces(blocking_, audit_).ok());
  ASSERT_EQ(audit_.paces.size(), 2U);
  EXPECT_EQ(audit_.paces.at("serves:1").age, Milliseconds(0));
  EXPECT_GE(audit_.paces.at("silent:1").age, Milliseconds(7'000));
  EXPECT_EQ(audit_.paces.at("silent:1").pace, kSome);
}

}  // namespace
}  // namespace firn
