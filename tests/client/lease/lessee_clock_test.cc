#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/client/lease/lessee_rig.h"
#include "tests/support/json_of.h"

// The behaviour of a lessee when the wall clock of its machine is wrong, or jumps.

namespace firn {
namespace {

using Kind = LeaseRequest::Kind;

constexpr Milliseconds kSec{1'000};

// A server would refuse such a clock, but the lessee must not depend on that.
TEST(LesseeClockTest, AWallClockHoursBehindBeginsAtTheFirstTick) {
  LesseeRig rig(At("2026-11-26T09:00:00Z"));
  rig.Tick();
  const WallMs right = At("2026-11-26T12:00:00Z");
  rig.Reply(rig.Newest(Kind::kGrant), rig.Terms(7, right, right + 60 * kSec));
  EXPECT_EQ(rig.Next().tick, rig.layout().TickAt(right));
  rig.clock().Advance(30 * kSec);
  EXPECT_EQ(rig.Next().tick, rig.layout().TickAt(right + 30 * kSec));
  rig.clock().Advance(30 * kSec);
  EXPECT_EQ(rig.TryNext().code(), Code::kUnavailable);
}

TEST(LesseeClockTest, AWallClockThatStepsBackDoesNotMovePositions) {
  LesseeRig rig;
  rig.Hold();
  for (int i = 0; i < 30; ++i) {
    rig.TakeSome();
    rig.clock().Advance(kSec);
    rig.clock().StepWall(-5 * kSec);
  }
  EXPECT_EQ(rig.taken(), 90u);
}

// The steps of tests/contract/jumps.json: jumps of the wall clock, which the generators of all
// languages share.
class JumpWorld {
 public:
  void Play(const std::string& step) {
    std::istringstream words(step);
    std::string verb, word;
    words >> verb >> word;
    if (verb == "lease") {
      Tick();
      Answer("terms");
      sent_.clear();
    } else if (verb == "pass") {
      Pass(Milliseconds(std::stoll(word)));
    } else if (verb == "step") {
      rig_.clock().StepWall(Milliseconds(std::stoll(word)));
      rig_.clock().Advance(Milliseconds(1));
    } else if (verb == "next") {
      Next(word);
    } else if (verb == "look") {
      EXPECT_TRUE(rig_.ids().interval());
    } else if (verb == "answer") {
      Answer(word);
    } else if (verb == "sent") {
      EXPECT_EQ(sent_, word.empty() ? std::vector<std::string>() : std::vector{word});
      sent_.clear();
    } else {
      ADD_FAILURE() << "unknown step";
    }
  }

 private:
  // A repetition of a request that is under way is none: the transport drops it.
  void Tick() {
    rig_.Tick();
    for (; seen_ < rig_.transport().all.size(); ++seen_) {
      const SentAsks::Sent& one = rig_.transport().all[seen_];
      if (one.number == under_way_) continue;
      under_way_ = one.number;
      sent_.emplace_back(one.ask.kind == Kind::kGrant   ? "grant"
                         : one.ask.kind == Kind::kRenew ? "renewal"
                                                        : "release");
    }
  }

  void Pass(Milliseconds time) {
    Tick();
    for (const BootMs until = rig_.clock().Boot() + time; rig_.clock().Boot() < until; Tick()) {
      const Milliseconds due = rig_.lessee().next_tick() - rig_.clock().Boot();
      rig_.clock().Advance(std::clamp(due, Milliseconds(1), until - rig_.clock().Boot()));
    }
  }

  void Next(const std::string& expected) {
    if (expected == "id") {
      EXPECT_EQ(rig_.Next().tick, rig_.layout().TickAt(rig_.clock().Wall()));
    } else {
      const std::string message = rig_.TryNext().status().message();
      EXPECT_NE(message.find("the wall clock has jumped forward by 3600 s, and no server has "
                             "confirmed it"),
                std::string::npos)
          << message;
    }
    if (rig_.TakeWoken()) Tick();
  }

  void Answer(const std::string& word) {
    const SentAsks::Sent request = rig_.transport().all.back();
    under_way_ = 0;
    const WallMs wall = rig_.clock().Wall();
    if (word == "terms") {
      if (request.ask.kind == Kind::kGrant) terms_ = rig_.Terms(++machine_, wall - kAnHour, wall);
      terms_.until = rig_.layout().TickAt(wall + 60 * kSec);
      rig_.Reply(request, terms_);
    } else if (word == "unknown") {
      rig_.Reply(request, {.kind = LeaseOutcome::Kind::kUnknown});
    } else {
      const bool refused = word == "refused";
      rig_.Reply(request,
                 {.kind = refused ? LeaseOutcome::Kind::kRefused : LeaseOutcome::Kind::kNoAnswer,
                  .status = Unavailable(word)});
    }
    Tick();
  }

  LesseeRig rig_;
  LeaseGrant terms_;
  uint32_t machine_ = 6;
  std::vector<std::string> sent_;  // since the last check
  size_t seen_ = 0;
  uint64_t under_way_ = 0;
};

TEST(LesseeClockTest, Jumps) {
  const Json table = JsonOfFile(FIRN_SOURCE_DIR "/tests/contract/jumps.json");
  EXPECT_GT(table.at("cases").items().size(), 10u);
  for (const Json& one : table.at("cases").items()) {
    SCOPED_TRACE(one.at("case").text());
    JumpWorld world;
    for (const Json& step : one.at("steps").items()) {
      SCOPED_TRACE(step.text());
      world.Play(step.text());
      ASSERT_FALSE(testing::Test::HasFailure());
    }
  }
}

}  // namespace
}  // namespace firn
