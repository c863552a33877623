#include "server/lease/lease_table.h"

#include <set>

#include "client/lease/lease_request.h"
#include "tests/server/lease/lease_rig.h"

// Tests rules 1 to 6 of leases (registry/claim/WHY-LEASES-HOLD.md).

namespace firn {
namespace {

// --- rule 1: one claim backs one lease -----------------------------------------------------------

TEST_F(LeaseTest, AnswersOnlyAfterTheRecordNamesTheLease) {
  auto server = StartServer();
  const auto replied = server->Ask(1);
  for (int i = 0; i < 100 && !replied->reply; ++i) {
    for (uint32_t worker = 0; worker < 8; ++worker) EXPECT_FALSE(RecordOf(worker).lease);
    Run(Milliseconds(5), *server);
    std::set<uint32_t> leased;
    for (uint32_t worker = 0; worker < 8; ++worker) {
      if (RecordOf(worker).lease) leased.insert(worker);
    }
    if (!leased.empty()) break;
    EXPECT_FALSE(replied->reply);
  }
  Run(kAMoment, *server);
  const SlotRecord record = RecordOf(replied->terms().worker);
  EXPECT_EQ(record.lease, (SlotLease{"program", "s:7609"}));
  EXPECT_EQ(record.owner, "s/program");
  EXPECT_EQ(StartOf(replied->terms().from), record.since);
  EXPECT_TRUE(CheckTerms(replied->terms()).ok()) << CheckTerms(replied->terms());
}

TEST_F(LeaseTest, TakesOnlySlotsOfTheUpperPartOfItsRack) {
  auto server = StartServer();
  std::set<uint32_t> workers;
  for (uint64_t token = 1; token <= 4; ++token) workers.insert(Grant(*server, token).worker);
  EXPECT_EQ(workers, (std::set<uint32_t>{4, 5, 6, 7}));
  const auto refused = server->Ask(5);
  Run(kAMoment, *server);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kLater);
  EXPECT_NE(refused->reply->message.find("of 4 slots for leases of rack 0, 4 have a bound ahead"),
            std::string::npos)
      << refused->reply->message;
}

TEST_F(LeaseTest, TriesOtherRacksIfTheRequestNamesNone) {
  LeaseTableOptions options = LeasesOf("s");
  options.split = *RackSplit::Make(options.claim.layout, 1);
  MakeClusterWith(8, /*rack_bits=*/1);
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  for (uint64_t token = 1; token <= 8; ++token) {
    EXPECT_EQ(Grant(*server, token).rack, token <= 4 ? 0u : 1u) << token;
  }
  const auto refused = server->Ask(9);
  Run(kAMoment, *server);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kLater);
}

TEST_F(LeaseTest, PrefersAUsedSlotToAnUnusedOne) {
  auto server = StartServer();
  const LeaseGrant first = Grant(*server, 1);
  server->End(first.lease, 0, first.from);
  Run(kAMoment, *server);
  Run(Milliseconds(1'000), *server);
  EXPECT_EQ(Grant(*server, 2).worker, first.worker);
}

TEST_F(LeaseTest, NeverClaimsASecondTime) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  SlotRecord others = RecordOf(lease.worker);
  others.nonce = Nonce(1, 1);
  others.lease.reset();
  Write1(SlotPath({0, lease.worker}), FormatSlotRecord(others));
  Run(Milliseconds(120'000), *server);
  for (uint32_t worker = 0; worker < 8; ++worker) EXPECT_FALSE(RecordOf(worker).lease) << worker;
}

// --- rule 2: promised ----------------------------------------------------------------------------

TEST_F(LeaseTest, TheFirstIntervalHasAtMost15Seconds) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  EXPECT_LE(lease.until - lease.from, 15'000);
  EXPECT_GT(lease.until - lease.from, 14'000);
  EXPECT_GT(lease.renew_in, Milliseconds(4'000));
  EXPECT_LE(lease.renew_in, Milliseconds(5'000));
}

TEST_F(LeaseTest, PromisesNothingBeyondTheBound) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Run(Milliseconds(5'000), *server);
  server->link().Disconnect();
  const WallMs bound = RecordOf(lease.worker).bound;
  WallMs end;
  for (uint64_t turn = 1; turn < 100 && end < bound; ++turn) {
    end = StartOf(Renewed(*server, lease.lease, turn, turn - 1).until);
    EXPECT_LE(end, bound);
    EXPECT_LE(end, server->Time().id_time + Milliseconds(60'000));
    Run(Milliseconds(10'000), *server);
  }
  EXPECT_EQ(end, bound);
}

TEST_F(LeaseTest, TheBoundFollowsTheIdClockAndNotThePromise) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Run(Milliseconds(10'000), *server);
  const auto renewed = server->Renew(lease.lease, 1, 0, Milliseconds(600'000));
  Run(Milliseconds(120'000), *server);
  EXPECT_GT(StartOf(renewed->terms().until), clock_.Wall() + Milliseconds(400'000));
  EXPECT_LE(RecordOf(lease.worker).bound, clock_.Wall() + Milliseconds(600'000));
}

TEST_F(LeaseTest, RefusesALengthBelowTwoTicksAndASecond) {
  auto server = StartServer();
  EXPECT_EQ(server->Ask(1, Milliseconds(1'001))->verdict(), LeaseVerdict::kBadRequest);
}

// Otherwise a program that requests no length would get no lease from this server.
TEST_F(LeaseTest, TheUsualLengthIsAtMostTheWindow) {
  LeaseTableOptions options = LeasesOf("s");
  options.claim.window = Milliseconds(30'000);
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  const auto replied = server->Call(LeaseAsk{TokenOf(1), "program", {}, {}, clock_.Wall()});
  Run(Milliseconds(5'000), *server);
  const auto renewed =
      server->Call(LeaseRenewal{replied->terms().lease, TokenOf(1), {}, {}, clock_.Wall()});
  Run(Milliseconds(50), *server);
  const Tick now = Layout::Firn().TickAt(clock_.Wall());
  EXPECT_GT(renewed->terms().until, now + 28'000);
  EXPECT_LE(renewed->terms().until, now + 30'000);
}

// The clients' generators always request a length, by default 60 s.
TEST_F(LeaseTest, GivesTheWindowIfMoreIsRequested) {
  LeaseTableOptions options = LeasesOf("s");
  options.claim.window = Milliseconds(5'000);
  auto server = StartServer(options);
  Run(Milliseconds(10), *server);
  LeaseGrant lease = Grant(*server, 1);
  for (uint64_t turn = 1; turn <= 20; ++turn) {
    Run(lease.renew_in, *server);
    lease = Renewed(*server, lease.lease, turn, turn - 1);
    const Tick now = Layout::Firn().TickAt(clock_.Wall());
    EXPECT_GT(lease.until, now + 3'000);
    EXPECT_LE(lease.until, now + 5'000);
    EXPECT_LE(lease.renew_in, Milliseconds(5'000) / 3);
  }
}

TEST_F(LeaseTest, TheUsualLengthIsAMinute) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Run(Milliseconds(8'000), *server);
  const auto renewed = server->Call(LeaseRenewal{lease.lease, TokenOf(1), {}, {}, clock_.Wall()});
  Run(Milliseconds(50), *server);
  const Tick now = Layout::Firn().TickAt(clock_.Wall());
  EXPECT_GT(renewed->terms().until, now + 59'000);
  EXPECT_LE(renewed->terms().until, now + 60'000);
}

// --- rule 3: the program's clock -----------------------------------------------------------------

TEST_F(LeaseTest, RefusesAProgramWhoseClockIsWrong) {
  auto server = StartServer();
  LeaseAsk ask{TokenOf(1), "program", Milliseconds(60'000), {}, clock_.Wall() + kAnHour};
  const auto replied = server->Call(ask);
  EXPECT_EQ(replied->verdict(), LeaseVerdict::kBadRequest);
  EXPECT_NE(replied->reply->message.find("clock is 3600 s ahead of the server's"),
            std::string::npos)
      << replied->reply->message;
}

// --- rule 4: no bound falls below promised -------------------------------------------------------

// With such an interval, the program would issue no id: by its clock, every lease would already
// have ended.
TEST_F(LeaseTest, RefusesAnIntervalThatIsShorterThanTheProgramsClockIsAhead) {
  auto server = StartServer();
  const auto ask = [&](int64_t off, int64_t ahead) {
    return server->Call(LeaseAsk{TokenOf(static_cast<uint64_t>(off + 10 * ahead)),
                                 "program",
                                 Milliseconds(ahead),
                                 {},
                                 clock_.Wall() + Milliseconds(off)});
  };
  const auto refused = ask(8'000, 5'000);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kBadRequest);
  EXPECT_NE(refused->reply->message.find("8 s ahead of the server's, so an interval of 5 s"),
            std::string::npos)
      << refused->reply->message;
  for (const auto& replied : {ask(8'000, 20'000), ask(4'000, 5'000), ask(-8'000, 5'000)}) {
    Run(kAMoment, *server);
    EXPECT_EQ(replied->verdict(), LeaseVerdict::kGranted);
  }
}

TEST_F(LeaseTest, AnExpiredLeaseIsReleasedAtItsEnd) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  const LeaseGrant renewed = Renewed(*server, lease.lease, 1, 0);
  Run(Milliseconds(61'000), *server);
  const SlotRecord record = RecordOf(lease.worker);
  EXPECT_TRUE(record.nonce.zero());
  EXPECT_EQ(record.bound, StartOf(renewed.until));
  EXPECT_EQ(server->table().counts().expired, 1u);
}

TEST_F(LeaseTest, ALeaseThatIsGivenBackIsReleasedAboveTheTicksUsed) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Renewed(*server, lease.lease, 1, 0);
  Run(Milliseconds(2'000), *server);
  const Tick used = lease.from + 1'000;
  EXPECT_EQ(server->End(lease.lease, 1, used)->verdict(), LeaseVerdict::kEnded);
  Run(kAMoment, *server);
  EXPECT_TRUE(RecordOf(lease.worker).nonce.zero());
  EXPECT_EQ(RecordOf(lease.worker).bound, StartOf(used + 1));
}

TEST_F(LeaseTest, ACopyThatEndsTheLeaseDoesNotLowerItsBound) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Renewed(*server, lease.lease, 1, 0);
  const LeaseGrant last = Renewed(*server, lease.lease, 2, 1);
  EXPECT_EQ(server->End(lease.lease, 1, lease.from)->verdict(), LeaseVerdict::kEnded);
  Run(Milliseconds(70'000), *server);
  EXPECT_GE(RecordOf(lease.worker).bound, StartOf(last.until));
}

TEST_F(LeaseTest, RefusesAUseBeyondTheEnd) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  EXPECT_EQ(server->End(lease.lease, 0, lease.until)->verdict(), LeaseVerdict::kBadRequest);
  EXPECT_EQ(server->table().List().size(), 1u);
}

// --- rule 5: copies ------------------------------------------------------------------------------

TEST_F(LeaseTest, TheSameTokenGetsTheSameAnswerUntilItIsRenewed) {
  auto server = StartServer();
  const auto first = server->Ask(1), again = server->Ask(1);
  Run(kAMoment, *server);
  EXPECT_EQ(first->terms().lease, again->terms().lease);
  Run(Milliseconds(3'000), *server);
  const LeaseGrant later = Grant(*server, 1);
  EXPECT_EQ(later.lease, first->terms().lease);
  EXPECT_EQ(later.until, first->terms().until);
  Renewed(*server, later.lease, 1, 0);
  EXPECT_EQ(server->Ask(1)->verdict(), LeaseVerdict::kOutdated);
  EXPECT_EQ(server->table().List().size(), 1u);
  Renewed(*server, later.lease, 2, 1);  // the old request did not end the lease
}

TEST_F(LeaseTest, ARepeatedTurnGetsTheSameEnd) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  const LeaseGrant first = Renewed(*server, lease.lease, 1, 0);
  Run(Milliseconds(5'000), *server);
  EXPECT_EQ(Renewed(*server, lease.lease, 1, 0).until, first.until);
  EXPECT_GT(Renewed(*server, lease.lease, 2, 1).until, first.until);
}

TEST_F(LeaseTest, ALateRepetitionOfAnEarlierTurnEndsNothing) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Renewed(*server, lease.lease, 1, 0);
  Renewed(*server, lease.lease, 2, 1);
  EXPECT_EQ(server->Renew(lease.lease, 1, 0)->verdict(), LeaseVerdict::kOutdated);
  Renewed(*server, lease.lease, 3, 2);
}

// The server either remembers the turn or refuses the request because of its clock, after any
// number of later turns.
TEST_F(LeaseTest, ALateRepetitionOfAMuchEarlierTurnEndsNothing) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  std::vector<LeaseRenewal> sent;
  for (uint64_t turn = 1; turn <= 60; ++turn) {
    sent.push_back({lease.lease, TokenOf(turn), turn == 1 ? std::string() : TokenOf(turn - 1),
                    Milliseconds(60'000), clock_.Wall()});
    const auto renewed = server->Call(sent.back());
    Run(Milliseconds(500), *server);
    EXPECT_EQ(renewed->verdict(), LeaseVerdict::kGranted) << turn;
    for (const LeaseRenewal& late : sent) {
      if (late.turn == TokenOf(turn)) continue;
      const LeaseVerdict verdict = server->Call(late)->verdict();
      const bool clock_is_refused = late.clock + Milliseconds(10'000) < clock_.Wall();
      ASSERT_EQ(verdict, clock_is_refused ? LeaseVerdict::kBadRequest : LeaseVerdict::kOutdated);
    }
  }
  Renewed(*server, lease.lease, 61, 60);
  EXPECT_EQ(server->table().counts().copies, 0u);
}

// The refusal limits the number of turns that a server must remember.
TEST_F(LeaseTest, RefusesAProgramThatRenewsWithoutAPause) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Run(Milliseconds(5'000), *server);
  Renewed(*server, lease.lease, 1, 0);
  uint64_t turn = 1;
  while (turn < 1'000 &&
         server->Renew(lease.lease, turn + 1, turn)->verdict() == LeaseVerdict::kGranted) {
    ++turn;
  }
  EXPECT_GE(turn, 200u);
  EXPECT_LT(turn, 210u);
  Run(Milliseconds(25'000), *server);
  Renewed(*server, lease.lease, turn + 1, turn);  // repeats the refused turn
}

TEST_F(LeaseTest, RevokesALeaseThatTwoCopiesRenew) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  const LeaseGrant promised = Renewed(*server, lease.lease, 1, 0);
  EXPECT_EQ(server->Renew(lease.lease, 2, 0)->verdict(), LeaseVerdict::kRevoked);
  EXPECT_EQ(server->Renew(lease.lease, 3, 1)->verdict(), LeaseVerdict::kRevoked);
  EXPECT_EQ(server->End(lease.lease, 1, lease.from)->verdict(), LeaseVerdict::kRevoked);
  EXPECT_EQ(server->Ask(1)->verdict(), LeaseVerdict::kRevoked);
  EXPECT_EQ(server->table().counts().copies, 1u);
  Run(Milliseconds(61'000), *server);
  EXPECT_EQ(RecordOf(lease.worker).bound, StartOf(promised.until));
}

// --- rule 6: the end -----------------------------------------------------------------------------

TEST_F(LeaseTest, AnExpiredLeaseLeavesTheTableAlthoughItsSlotCannotBeReleased) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  Run(Milliseconds(5'000), *server);
  server->link().Disconnect();
  Run(Milliseconds(11'000), *server);
  EXPECT_EQ(server->Renew(lease.lease, 1, 0)->verdict(), LeaseVerdict::kUnknown);
  EXPECT_FALSE(RecordOf(lease.worker).nonce.zero());
  const std::string shown = server->table().List().at(0).trouble;
  EXPECT_NE(shown.find("once the registry has recorded its end"), std::string::npos) << shown;
}

TEST_F(LeaseTest, WritesAZeroNonceOnlyCloseToTheBound) {
  auto server = StartServer();
  const LeaseGrant lease = Grant(*server, 1);
  const LeaseGrant renewed = Renewed(*server, lease.lease, 1, 0);
  server->End(lease.lease, 1);
  while (!RecordOf(lease.worker).nonce.zero() && server->Time().id_time < StartOf(renewed.until)) {
    Run(Milliseconds(5), *server);
  }
  ASSERT_TRUE(RecordOf(lease.worker).nonce.zero());
  EXPECT_EQ(RecordOf(lease.worker).bound, StartOf(renewed.until));
  EXPECT_GE(server->Time().id_time, StartOf(renewed.until) - Milliseconds(1'000));
}

// --- what operators see -------------------------------------------------------------------------

TEST_F(LeaseTest, CountsEachAnswerAndEachRepetitionOnce) {
  auto server = StartServer();
  lease_disk_.stalled = true;
  server->Ask(1);
  Run(kAMoment, *server);
  EXPECT_EQ(server->table().counts().granted, 0u) << "the bound is not on the disk";
  lease_disk_.stalled = false;
  Run(Milliseconds(50), *server);
  const LeaseGrant lease = Grant(*server, 1);
  EXPECT_EQ(server->table().counts().granted, 1u);
  Run(Milliseconds(5'000), *server);
  lease_disk_.fails = true;
  const auto refused = server->Renew(lease.lease, 1, 0);
  Run(Milliseconds(2'000), *server);
  EXPECT_EQ(refused->verdict(), LeaseVerdict::kLater);
  EXPECT_EQ(server->table().counts().renewed, 0u);
  lease_disk_.fails = false;
  Run(Milliseconds(1'000), *server);
  Renewed(*server, lease.lease, 1, 0);
  Renewed(*server, lease.lease, 1, 0);
  EXPECT_EQ(server->table().counts().renewed, 1u);
  EXPECT_EQ(server->table().counts().granted, 1u);
}

TEST_F(LeaseTest, NumbersOfALaterProcessAreHigher) {
  auto server = StartServer();
  uint64_t highest = 0;
  for (uint64_t token = 1; token <= 3; ++token) {
    const uint64_t number = Grant(*server, token).number;
    EXPECT_GT(number, highest);
    highest = number;
  }
  server = StartServer();
  EXPECT_GT(Grant(*server, 4).number, highest);
}

}  // namespace
}  // namespace firn
