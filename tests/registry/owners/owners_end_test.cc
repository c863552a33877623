#include "registry/owners/owners.h"
#include "tests/registry/owners/owners_fixture.h"

namespace firn {
namespace {

class OwnersEndTest : public OwnersFixture {
 protected:
  // Lets a_, the owner of all partitions, leave. `successor` must take them one by one.
  void ExpectHandOverTo(OwnersServer& successor) {
    a_.owners.HandOver();
    for (int i = 0; i < 2 * kWindow / kStep && !a_.owners.handed_over(); ++i) {
      Pass(kStep, {&a_, &successor});
      EXPECT_GE(a_.MayTake(clock_.Boot()) + successor.MayTake(clock_.Boot()), 7) << i;
    }
    Pass(10 * kStep, {&a_, &successor});
    EXPECT_EQ(successor.MayTake(clock_.Boot()), 8);
  }
};

TEST_F(OwnersEndTest, EndsWhenAnotherProcessWritesItsBeat) {
  MakePartitions();
  Pass(kStart, {&a_});
  const PartitionOwner owner = OwnerOf(0);
  Beat beat = ParseBeat(BeatOf(owner).data).value();
  beat.word = Nonce(7, 7);
  Apply({Write::Set(BeatPath(owner.tenure), FormatBeat(beat), Write::kAnyVersion)});
  Pass(kWindow / 3 + 2 * kStep, {&a_});
  EXPECT_EQ(a_.ended, 8);
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 0);
  Pass(kWindow * 2, {&a_});  // the process no longer writes
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_NE(OwnerOf(0).tenure, owner.tenure);
}

TEST_F(OwnersEndTest, EndsWhenAPartitionIsLost) {
  MakePartitions();
  Pass(kStart, {&a_});
  Apply({Write::Erase(ChangePath(4, OwnerOf(4).change), 0),
         Write::Erase(PartitionPath(4), Write::kAnyVersion)});
  Pass(kWindow / 3 + kStep, {&a_});
  EXPECT_EQ(a_.ended, 8);
}

TEST_F(OwnersEndTest, ContinuesUnderAnotherRootNodeOfTheSameEra) {
  MakePartitions();
  Pass(kStart, {&a_});
  for (int i = 0; i < 5; ++i) {
    meta_.floor += Milliseconds(1);
    SetRoot();
    Pass(kWindow / 2, {&a_});
    EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  }
  EXPECT_EQ(a_.ended, 0);
}

TEST_F(OwnersEndTest, EndsWhenTheClusterIsFrozen) {
  MakePartitions();
  Pass(kStart, {&a_});
  meta_.frozen = true;
  meta_.reason = "a ledger was lost";
  SetRoot();
  Pass(kWindow * 5, {&a_});
  EXPECT_EQ(a_.ended, 8);
  EXPECT_EQ(a_.owners.trouble(), "the cluster is frozen: a ledger was lost; run firn restore");
  EXPECT_EQ(a_.owners.At(0).kind, Holding::Kind::kNobody) << "its own tenure has ended";
  meta_.frozen = false;
  SetRoot();
  Pass(kWindow * 3, {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersEndTest, EndsInAnotherEra) {
  MakePartitions();
  Pass(kStart, {&a_});
  const Nonce before = meta_.era;
  meta_.era = Nonce(5, 6);
  Apply({Write::Erase(EraPath(before), Write::kAnyVersion),
         Write::Create(EraPath(meta_.era), "", kStays),
         Write::Set("/", FormatMeta(meta_), Write::kAnyVersion)});
  Pass(kWindow / 3 + 2 * kStep, {&a_});
  EXPECT_EQ(a_.ended, 8);
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 0);
}

TEST_F(OwnersEndTest, HandsOverAfterItsTermsHaveEnded) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kStart, {&a_, &b_});
  a_.owners.HandOver();
  Pass(kWindow / 2, {&a_, &b_});
  EXPECT_EQ(a_.ended, 8);
  EXPECT_TRUE(a_.named_when_ended);  // the end was reported before any write
  EXPECT_TRUE(a_.owners.handed_over());
  EXPECT_EQ(b_.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersEndTest, KeepsItsPartitionsUntilAnotherServerMayTakeThem) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kWindow / 2, {&a_, &b_});
  a_.owners.HandOver();
  Pass(kWindow / 2, {&a_, &b_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  Pass(kWindow, {&a_, &b_});
  EXPECT_TRUE(a_.owners.handed_over());
  EXPECT_EQ(b_.MayTake(clock_.Boot()), 8);
}

// A server may not take a partition in a new session, although its tenure continues.
TEST_F(OwnersEndTest, AServerThatLeavesWaitsForOneThatLostItsSession) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kStart + kWindow, {&a_, &b_});
  ASSERT_EQ(a_.Owned(), 8);
  tree_.Expire(b_.link.session());
  Pass(kWindow / 4, {&a_, &b_});
  ExpectHandOverTo(b_);
}

// The beat of the killed server says nothing of this.
TEST_F(OwnersEndTest, AServerThatLeavesDoesNotHandOverToOneThatWasKilled) {
  OwnersServer again{tree_, clock_, b_.address, 4};
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kStart + kWindow, {&a_, &b_});
  ASSERT_EQ(a_.Owned(), 8);
  ExpectHandOverTo(again);
}

// Neither the server that leaves nor one that may not take a partition yet comes before it.
TEST_F(OwnersEndTest, ItsSuccessorTakesThePartitionsAsSoonAsTheyAreFree) {
  OwnersServer c{tree_, clock_, "10.0.0.3:7609", 3};
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kStart, {&a_, &b_});
  Pass(kWindow, {&a_, &b_, &c});
  ASSERT_EQ(a_.Owned(), 8);
  a_.owners.HandOver();
  while (a_.Owned() == 8) Pass(kStep, {&a_, &b_, &c});
  while (!a_.owners.handed_over()) Pass(kStep, {&a_, &c});
  Round(b_);
  EXPECT_EQ(b_.MayTake(clock_.Boot()), 8);
}

// Each of them is old enough to take the partitions of the other.
TEST_F(OwnersEndTest, ServersThatLeaveTogetherKeepTheirPartitionsUntilAThirdMayTakeThem) {
  OwnersServer c{tree_, clock_, "10.0.0.3:7609", 3};
  MakePartitions();
  Pass(kStart + kWindow, {&a_, &b_});
  Pass(kWindow / 2, {&a_, &b_, &c});
  a_.owners.HandOver();
  b_.owners.HandOver();
  for (int i = 0; i < kWindow / 2 / kStep; ++i) {
    Pass(kStep, {&a_, &b_, &c});
    ASSERT_EQ(a_.MayTake(clock_.Boot()) + b_.MayTake(clock_.Boot()), 8);
  }
  EXPECT_TRUE(a_.owners.awaits_successor());
  Pass(kWindow, {&a_, &b_, &c});
  EXPECT_TRUE(a_.owners.handed_over());
  EXPECT_TRUE(b_.owners.handed_over());
  EXPECT_EQ(c.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersEndTest, ServersThatLeaveTogetherKeepTheirPartitionsUntilTheyStop) {
  MakePartitions();
  Pass(kStart + kWindow, {&a_, &b_});
  a_.owners.HandOver();
  Pass(kStep, {&a_, &b_});
  b_.owners.HandOver();
  Pass(kWindow, {&a_, &b_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()) + b_.MayTake(clock_.Boot()), 8);
  EXPECT_FALSE(a_.owners.awaits_successor());
  EXPECT_FALSE(b_.owners.awaits_successor());
}

TEST_F(OwnersEndTest, TheSuccessorTakesThePartitionsEvenIfItLeavesMeanwhile) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kStart, {&a_, &b_});
  ASSERT_EQ(a_.Owned(), 8);
  a_.owners.HandOver();
  while (a_.Owned() == 8) Pass(kStep, {&a_, &b_});
  b_.owners.HandOver();
  Pass(kWindow, {&a_, &b_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()) + b_.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersEndTest, KeepsItsPartitionsUntilItStopsIfThereIsNoOtherServer) {
  MakePartitions();
  Pass(kStart, {&a_});
  a_.owners.HandOver();
  Pass(kWindow, {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_FALSE(a_.owners.handed_over());
  EXPECT_FALSE(a_.owners.awaits_successor()) << "a drain does not wait";
  a_.owners.HandOver(/*waits=*/false);
  Pass(Milliseconds(200), {&a_});
  EXPECT_TRUE(a_.owners.handed_over());
}

// Its ports are closed, so no server can take numbers from it any more.
TEST_F(OwnersEndTest, FreesItsPartitionsAtOnceWhenItStops) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kWindow / 2, {&a_, &b_});
  a_.owners.HandOver();
  a_.owners.HandOver(/*waits=*/false);
  Pass(Milliseconds(200), {&a_, &b_});
  EXPECT_TRUE(a_.owners.handed_over());
}

TEST_F(OwnersEndTest, HandsOverAgainAfterALostRequest) {
  MakePartitions();
  Pass(kStart, {&a_});
  const uint64_t term = a_.owners.term(0).Load();
  for (int i = 0; i < 4; ++i) a_.link.Script(Verb::kMulti, {.kind = Fate::Kind::kRequestLost});
  a_.owners.HandOver(/*waits=*/false);
  Pass(5 * kStep, {&a_});
  EXPECT_FALSE(a_.owners.term(0).Holds(term, clock_.Boot()));
  Pass(kWindow, {&a_});
  EXPECT_TRUE(a_.owners.handed_over());
  for (size_t i = 0; i < kPartitions; ++i) EXPECT_TRUE(OwnerOf(i).tenure.zero());
}

TEST_F(OwnersEndTest, GivesUpWhenOthersCanNoLongerReachIt) {
  MakePartitions();
  Pass(kStart, {&a_});
  a_.owners.Permit(false);
  Pass(Milliseconds(300), {&a_});
  EXPECT_EQ(a_.Owned(), 0);
  EXPECT_TRUE(OwnerOf(0).tenure.zero());
  a_.owners.Permit(true);
  Pass(Milliseconds(300), {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersEndTest, ContinuesAfterALapseInTheSameSession) {
  MakePartitions();
  Pass(kStart, {&a_});
  a_.link.Disconnect();
  Pass(kWindow * 3, {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 0);
  EXPECT_EQ(a_.owners.At(0).kind, Holding::Kind::kLapsed);
  EXPECT_EQ(a_.owners.trouble(), "the registry does not acknowledge this server's renewals");
  a_.link.Reconnect();
  Pass(kWindow / 4, {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_EQ(a_.owners.At(0).kind, Holding::Kind::kHere);
  EXPECT_EQ(a_.owners.trouble(), "");
  EXPECT_EQ(a_.ended, 0);
}

// The registry may have been rolled back and have reached the same versions again.
TEST_F(OwnersEndTest, EndsAfterALapseInAnotherSession) {
  MakePartitions();
  Pass(kStart, {&a_});
  const PartitionOwner owner = OwnerOf(0);
  a_.link.Disconnect();
  Pass(kWindow * 2, {&a_});
  tree_.Expire(a_.link.session());
  a_.link.Reconnect();
  Pass(kWindow, {&a_});
  EXPECT_EQ(a_.ended, 8);
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 0);
  Pass(kWindow, {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_NE(OwnerOf(0).tenure, owner.tenure);
}

// The partition is rolled back to an earlier state, and another server takes it. It then has the
// version and the creation time with which the present term began.
TEST_F(OwnersEndTest, EndsWhenARolledBackPartitionNamesAnotherTenureInTheSameVersion) {
  MakePartitions();
  Pass(kStart, {&a_});
  const PartitionOwner owner = OwnerOf(4);
  const int64_t version = a_.owners.At(4).version;
  const Nonce other(8, 8);
  Apply({Write::Erase(ChangePath(4, owner.change), 0),
         Write::Create(ChangePath(4, other), "", kStays),
         Write::Set(PartitionPath(4), FormatPartitionOwner({Nonce(7, 7), b_.address, other}),
                    version)});
  tree_.SetVersion(PartitionPath(4), version);
  ASSERT_EQ(tree_.Peek(PartitionPath(4))->stat.version, version);
  const uint64_t term = a_.owners.term(4).Load();
  Pass(kWindow / 3 + kStep, {&a_});
  EXPECT_FALSE(a_.owners.term(4).Holds(term, clock_.Boot()));
  EXPECT_EQ(a_.ended, 8);
}

// Without a notification, a late renewal fails because the change's node is missing.
TEST_F(OwnersEndTest, RenewalIsRefusedAfterAnotherChangeInTheSameVersion) {
  MakePartitions();
  Pass(kStart, {&a_});
  const PartitionOwner owner = OwnerOf(4);
  const BootMs until = a_.owners.At(4).until;
  Apply({Write::Erase(ChangePath(4, owner.change), 0)});
  Pass(kWindow / 3 + kStep, {&a_});
  EXPECT_EQ(a_.ended, 8);
  EXPECT_EQ(a_.owners.term(4).until(), until);
}

// The server sets its beat to ended, so that others need not wait.
TEST_F(OwnersEndTest, TenureThatEndsHereIsTakenOverAtOnce) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kStart, {&a_, &b_});
  ASSERT_EQ(a_.Owned(), 8);
  const PartitionOwner owner = OwnerOf(4);
  Apply({Write::Set(PartitionPath(4), FormatPartitionOwner(owner), Write::kAnyVersion)});
  Pass(kStep, {&a_});
  EXPECT_EQ(a_.ended, 8);
  a_.owners.Permit(false);
  Pass(kWindow / 4 + 20 * kStep, {&a_, &b_});
  EXPECT_EQ(b_.MayTake(clock_.Boot()), 8);
}

TEST_F(OwnersEndTest, ErasesTheBeatOfATenureThatItHasEnded) {
  MakePartitions();
  Pass(kStart, {&a_});
  Pass(kWindow, {&a_, &b_});
  ASSERT_EQ(a_.Owned(), 8);
  Pass(kWindow * 2, {&b_});
  EXPECT_EQ(b_.MayTake(clock_.Boot()), 8);
  EXPECT_EQ(Beats(), 2U);
  Pass(kWindow * 4, {&b_});
  EXPECT_EQ(Beats(), 1U);
}

TEST_F(OwnersEndTest, ErasesBeatThatNoPartitionNamesOnceItHasNotChangedForLong) {
  MakePartitions();
  Apply({Write::Create(BeatPath(Nonce(7, 7)), FormatBeat({.address = "10.0.0.3:7609"}), kStays),
         Write::Create(AlivePath(Nonce(7, 7)), "", kStays)});
  Pass(Beat::kWindowMax, {&a_});
  EXPECT_EQ(Beats(), 2U);
  Pass(Beat::kWindowMax / 2 + kWindow, {&a_});
  EXPECT_EQ(Beats(), 1U);
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_EQ(a_.ended, 0);
}

// The outcome of the first attempt is unknown. The attempt is applied after the server has given up
// the partition.
TEST_F(OwnersEndTest, ALateTakeoverOfAPartitionThatWasGivenUpBeginsNoTerm) {
  MakePartitions();
  Pass(kWindow * 5 / 4 - kStep, {&a_});
  for (size_t i = 0; i < kPartitions; ++i) {
    a_.link.Script(Verb::kMulti, {.kind = Fate::Kind::kLate, .apply_after = Milliseconds(900)});
  }
  Pass(Milliseconds(100), {&a_});
  a_.owners.Permit(false);
  Pass(kWindow * 2, {&a_});
  EXPECT_EQ(a_.Owned(), 0);
  for (size_t i = 0; i < kPartitions; ++i) EXPECT_TRUE(OwnerOf(i).tenure.zero());
}

TEST_F(OwnersEndTest, KeepsItsTermsWithinTheWindowAfterItsSessionIsLost) {
  MakePartitions();
  Pass(kStart, {&a_});
  tree_.Expire(a_.link.session());
  Pass(kWindow, {&a_});
  EXPECT_EQ(a_.MayTake(clock_.Boot()), 8);
  EXPECT_EQ(a_.ended, 0);
}

}  // namespace
}  // namespace firn
