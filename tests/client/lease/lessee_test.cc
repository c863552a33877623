// Plays the tables that the generators of all languages share, and tests behaviour that only this
// generator has.

#include "client/lease/lessee.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "common/base/cat.h"
#include "tests/client/lease/lease_player.h"
#include "tests/support/in_child.h"
#include "tests/support/json_of.h"

namespace firn {
namespace {

void Play(const std::string& name, size_t least) {
  const Json table = JsonOfFile(Cat(FIRN_SOURCE_DIR "/tests/contract/", name));
  EXPECT_GE(table.at("cases").items().size(), least);
  for (const Json& one : table.at("cases").items()) {
    if (one.contains("routing")) continue;
    SCOPED_TRACE(one.at("case").text());
    const Json* servers = one.Find("servers");
    const Json* ahead = one.Find("ahead");
    LeasePlayer player(servers == nullptr ? 2 : NumberOf<size_t>(*servers),
                       Milliseconds(ahead == nullptr ? 60'000 : NumberOf(*ahead)));
    for (const Json& step : one.at("steps").items()) {
      SCOPED_TRACE(step.text());
      player.Play(step.text());
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(LesseeTest, FollowsTheSharedTableOfRules) { Play("lessees.json", 60); }

TEST(LesseeTest, FollowsTheSharedTableOfClockJumps) { Play("jumps.json", 10); }

// The transport drops a repetition of a request that is still in progress.
TEST(LesseeTest, IgnoresAnAnswerToARequestThatIsAnswered) {
  LeasePlayer player(1, Milliseconds(60'000));
  player.Turn();
  player.Answer("terms");
  const size_t sent = player.TakeSent().size();
  player.lessee().OnReply(1, {.kind = LeaseOutcome::Kind::kGone}, player.clock().Read());
  player.Turn();
  EXPECT_EQ(sent, 1u);
  EXPECT_TRUE(player.TakeSent().empty());
  EXPECT_TRUE(player.TryNext().ok());
}

TEST(LesseeTest, ReportsEachFailure) {
  LeasePlayer player(1, Milliseconds(60'000));
  player.Turn();
  player.Answer("lost");
  player.Pass(Milliseconds(200));
  player.Answer("terms:spoilt=overlap");
  EXPECT_EQ(player.failures(),
            (std::vector{Unavailable("lost"), Invalid("base bits in the time or sequence field")}));
}

// The transport could not read the terms. The release is retried until the end in the terms, or for
// `ahead` if that end is unknown, has passed or is too late.
TEST(LesseeTest, GivesBackALeaseWithUnusableTerms) {
  constexpr Milliseconds kAhead{60'000};
  const std::vector<std::pair<std::optional<Milliseconds>, Milliseconds>> cases{
      {Milliseconds(15'000), Milliseconds(15'000)},
      {Milliseconds(600'000), kAhead},
      {std::nullopt, kAhead},
      {Milliseconds(-1'000), kAhead}};
  for (const auto& [end_in, repeated_for] : cases) {
    for (const bool answered : {false, true}) {
      SCOPED_TRACE(Cat(end_in ? end_in->count() : 0, " ms", answered ? ", answered" : ""));
      LeasePlayer player(1, kAhead);
      player.Turn();
      LeaseOutcome unusable{.kind = LeaseOutcome::Kind::kUnusable,
                            .terms = {.lease = "lease-8", .server = "s", .from = Tick(-5)},
                            .status = Invalid("a lease of another layout")};
      if (end_in) unusable.end = player.clock().Wall() + *end_in;
      player.lessee().OnReply(1, unusable, player.clock().Read());
      EXPECT_EQ(player.failures(), std::vector{Invalid("a lease of another layout")});
      player.lessee().Stop(player.clock().Read());
      player.clock().Advance(repeated_for - Milliseconds(1));
      player.lessee().Tick(player.clock().Read());
      EXPECT_FALSE(player.lessee().stopped());
      if (answered) {
        player.lessee().OnReply(2, {.kind = LeaseOutcome::Kind::kReleased}, player.clock().Read());
      } else {
        player.clock().Advance(Milliseconds(1));
        player.lessee().Tick(player.clock().Read());
      }
      EXPECT_TRUE(player.lessee().stopped());
    }
  }
}

TEST(LesseeTest, AForkedChildIssuesNothingAndSendsNothing) {
  LeasePlayer player(1, Milliseconds(60'000));
  player.Play("lease");
  EXPECT_TRUE(player.TryNext().ok());
  EXPECT_EQ(InChild([&] {
              if (player.TryNext().status() !=
                  Unavailable("this process is a forked child; create another generator")) {
                return 1;
              }
              player.Pass(Milliseconds(30'000));
              player.lessee().Stop(player.clock().Read());
              player.Turn();
              return player.TakeSent().empty() ? 0 : 2;
            }),
            0);
  EXPECT_TRUE(player.TryNext().ok());
}

}  // namespace
}  // namespace firn
