#include "registry/owners/owners.h"

#include "tests/registry/owners/owners_fixture.h"

namespace firn {
namespace {

using Kind = Holding::Kind;

class OwnersTest : public OwnersFixture {};

TEST_F(OwnersTest, DoesNotUseTheRegistryBeforeATagHasAnOwner) {
  FaultyCoordinator link(std::make_unique<MemoryCoordinator>(tree_), clock_);
  Owners idle(link, a_.entropy, {.address = "10.0.0.3:7609"}, [](size_t) {});
  idle.Permit(true);
  const uint64_t digest = tree_.digest();
  for (int i = 0; i < 100; ++i) {
    clock_.Advance(kStep);
    link.Dispatch(Milliseconds(0));
    idle.Tick(clock_.Boot());
  }
  EXPECT_EQ(tree_.digest(), digest);
  EXPECT_EQ(idle.At(0).kind, Kind::kUnknown);
  idle.HandOver();
  EXPECT_TRUE(idle.handed_over());
}

TEST_F(OwnersTest, WritesNothingWhileOthersCannotReachIt) {
  MakePartitions();
  a_.owners.Permit(false);
  const uint64_t digest = tree_.digest();
  Pass(kWindow * 10, {&a_});
  EXPECT_EQ(tree_.digest(), digest);
  EXPECT_EQ(a_.owners.At(3).kind, Kind::kNobody);
}

TEST_F(OwnersTest, TakesFreePartitionsOnceItsSessionIsOldEnough) {
  MakePartitions();
  Pass(kWindow * 5 / 4, {&a_});
  EXPECT_EQ(a_.Owned(), 0);
  Pass(Milliseconds(300), {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_EQ(OwnerOf(5).address, "10.0.0.1:7609");
  EXPECT_EQ(a_.owners.trouble(), "");
}

// A server with an unknown window may have owned the missing partitions.
TEST_F(OwnersTest, TakesMissingPartitionsAfterTheLongestWindow) {
  Pass(Beat::kWindowMax * 5 / 4, {&a_});
  EXPECT_EQ(a_.Owned(), 0);
  Pass(Milliseconds(800), {&a_});
  EXPECT_EQ(a_.Owned(), 8);
}

TEST_F(OwnersTest, KeepsWhatItOwns) {
  MakePartitions();
  Pass(kStart, {&a_});
  const int64_t version = a_.owners.At(0).version;
  for (int i = 0; i < 20; ++i) {
    Pass(kWindow / 2, {&a_, &b_});
    EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  }
  EXPECT_EQ(a_.owners.At(0).version, version);
  EXPECT_EQ(a_.ended, 0);
}

TEST_F(OwnersTest, ReportsTheOwnerAndItsSecretToTheOthers) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kWindow, {&a_, &b_});
  const Holding holding = b_.owners.At(2);
  EXPECT_EQ(holding.kind, Kind::kOther);
  EXPECT_EQ(holding.address, "10.0.0.1:7609");
  EXPECT_EQ(holding.version, a_.owners.At(2).version);
  EXPECT_EQ(holding.secret, a_.owners.secret());
  EXPECT_FALSE(holding.secret.zero());
}

// A server that starts beside them answers calls only once it knows the owners.
TEST_F(OwnersTest, ReadsAllPartitionsAtOnce) {
  MakePartitions();
  Pass(kStart, {&a_});
  constexpr Milliseconds kLatency{100};
  b_.link.SetPlan([](Verb) { return Fate{.answer_after = kLatency}; });
  EXPECT_FALSE(b_.owners.has_looked());
  Pass(kLatency * 5, {&a_, &b_});
  EXPECT_TRUE(b_.owners.has_looked());
  for (size_t i = 0; i < kPartitions; ++i) {
    EXPECT_EQ(b_.owners.At(i).secret, a_.owners.secret()) << i;
  }
}

TEST_F(OwnersTest, TakesOverOneAndAQuarterWindowsAfterTheLastBeat) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kWindow, {&a_, &b_});
  Pass(kWindow * 5 / 4 - kWindow / 3, {&b_});
  EXPECT_EQ(b_.Owned(), 0);
  Pass(kWindow, {&b_});
  EXPECT_EQ(b_.MayTake(clock_.Boot()), 8);
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 0);
  Round(a_);
  EXPECT_EQ(a_.Owned(), 0);
  EXPECT_EQ(a_.ended, 8);
}

// The owner is a server of a later version.
TEST_F(OwnersTest, TakesOverOneAndAQuarterOfTheWindowThatTheBeatNames) {
  MakePartitions();
  constexpr Milliseconds kLong{10'000};
  const Nonce tenure(7, 7), change(8, 8);
  std::vector<Write> writes{
      Write::Create(BeatPath(tenure), FormatBeat({.address = "10.0.0.3:7609", .window = kLong}),
                    kStays),
      Write::Create(AlivePath(tenure), "", kStays)};
  for (size_t i = 0; i < kPartitions; ++i) {
    writes.push_back(Write::Set(PartitionPath(i),
                                FormatPartitionOwner({tenure, "10.0.0.3:7609", change}),
                                Write::kAnyVersion));
    writes.push_back(Write::Create(ChangePath(i, change), "", kStays));
  }
  Apply(std::move(writes));
  Pass(kLong * 5 / 4 - kStep, {&a_});
  EXPECT_EQ(a_.Owned(), 0);
  Pass(kWindow, {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersTest, TakesThePartitionsOfAnEndedTenureAtOnce) {
  MakePartitions();
  Pass(kStart, {&a_});
  Beat beat = ParseBeat(BeatOf(OwnerOf(0)).data).value();
  beat.ended = true;
  const Nonce tenure = OwnerOf(0).tenure;
  Apply({Write::Set(BeatPath(tenure), FormatBeat(beat), Write::kAnyVersion),
         Write::Erase(AlivePath(tenure), 0)});
  Pass(kStart, {&b_});
  EXPECT_EQ(b_.Owned(), 8);
}

TEST_F(OwnersTest, CountsAgainAfterALostSession) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kWindow, {&a_, &b_});
  Pass(kWindow, {&b_});
  tree_.Expire(b_.link.session());
  Pass(kWindow * 5 / 4 - kStep, {&b_});
  EXPECT_EQ(b_.Owned(), 0);
  Pass(kWindow / 2, {&b_});
  EXPECT_EQ(b_.Owned(), 8);
}

TEST_F(OwnersTest, CountsItsTimeFromTheSendingOfARenewal) {
  MakePartitions();
  Pass(kStart, {&a_});
  const BootMs before = a_.owners.At(0).until;
  const int64_t version = BeatOf(OwnerOf(0)).stat.version;
  for (int i = 0; i < 2; ++i) {
    a_.link.Script(Verb::kMulti, {.answer_after = Milliseconds(900)});
  }
  do {
    Pass(kStep, {&a_});
  } while (BeatOf(OwnerOf(0)).stat.version == version);
  const BootMs sent = clock_.Boot();
  Pass(Milliseconds(890), {&a_});
  EXPECT_EQ(a_.owners.At(0).until, before);
  Pass(2 * kStep, {&a_});
  EXPECT_EQ(a_.owners.At(0).until, sent + kWindow);
}

TEST_F(OwnersTest, UnknownRenewalAddsNothingAndIsReadBack) {
  MakePartitions();
  Pass(kStart, {&a_});
  const BootMs before = a_.owners.At(0).until;
  a_.link.Script(Verb::kMulti, {.kind = Fate::Kind::kAnswerLost});
  const int64_t version = BeatOf(OwnerOf(0)).stat.version;
  do {
    Pass(kStep, {&a_});
  } while (BeatOf(OwnerOf(0)).stat.version == version);
  EXPECT_EQ(a_.owners.At(0).until, before);
  Pass(kWindow / 3, {&a_});
  EXPECT_GT(a_.owners.At(0).until, before);
  EXPECT_EQ(a_.ended, 0);
}

TEST_F(OwnersTest, LostRenewalIsSentAgain) {
  MakePartitions();
  Pass(kStart, {&a_});
  for (int i = 0; i < 3; ++i) a_.link.Script(Verb::kMulti, {.kind = Fate::Kind::kRequestLost});
  Pass(kWindow * 3, {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_EQ(a_.ended, 0);
}

TEST_F(OwnersTest, PausedOwnerMayNotTakeAfterItsWindow) {
  MakePartitions();
  Pass(kStart, {&a_});
  const uint64_t term = a_.owners.term(0).Load();
  clock_.Advance(kWindow);
  EXPECT_FALSE(a_.owners.term(0).Holds(term, clock_.Boot()));
}

TEST_F(OwnersTest, ServersWithBeatsShareThePartitions) {
  MakePartitions();
  Pass(kStart, {&a_, &b_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()) + b_.MayTake(clock_.Boot()), 8);
  EXPECT_GT(a_.Owned(), 0);
  EXPECT_GT(b_.Owned(), 0);
}

}  // namespace
}  // namespace firn
