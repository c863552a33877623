#include <gmock/gmock.h>

#include "tests/registry/operate/audit_fixture.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;

TEST_F(AuditTest, ANewClusterHasNoFaults) {
  const Audit audit = Read();
  EXPECT_THAT(audit.Faults(), IsEmpty());
  EXPECT_EQ(audit.slots.size(), 12u);
  EXPECT_EQ(audit.slots[5].machine, MachineId(9));
  EXPECT_EQ(audit.slots[5].use, SlotUse::kNeverUsed);
}

TEST_F(AuditTest, ShowsTheStateOfEachSlot) {
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(1));
  Live({0, 0}, Nonce(1, 1));
  Hold({0, 1}, Nonce(1, 2), kNow + Milliseconds(1));
  Hold({0, 2}, Nonce(1, 3), kNow);
  Hold({1, 0}, Nonce(), kNow);
  const Audit audit = Read();
  EXPECT_EQ(audit.slots[0].use, SlotUse::kHeld);
  EXPECT_EQ(audit.slots[1].use, SlotUse::kUnattended);
  EXPECT_EQ(audit.slots[2].use, SlotUse::kPassed);
  EXPECT_EQ(audit.slots[3].use, SlotUse::kReleased);
  EXPECT_THAT(audit.Faults(), IsEmpty());
}

// One fault in an otherwise healthy cluster, and its message.
struct Damage {
  const char* name;
  void (*inflict)(AuditTest& cluster);
  const char* words;
};

std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

class AuditFindsTest : public AuditTest, public testing::WithParamInterface<Damage> {};

TEST_P(AuditFindsTest, ReportsThisFaultOnly) {
  MakeProvidersFolder();
  MakeTag("order", 5'000);
  Hold({0, 0}, Nonce(1, 1), kNow + kMs);
  ASSERT_THAT(Read().Faults(), IsEmpty());
  GetParam().inflict(*this);
  EXPECT_THAT(Read().Faults(), ElementsAre(HasSubstr(GetParam().words)));
}

const Damage kDamages[] = {
    // The root node and the nodes beside it.
    {"NoCluster", [](AuditTest& c) { c.LoseData(); }, "there is no cluster here"},
    {"RootUnreadable", [](AuditTest& c) { c.Put(kMetaPath, "rubbish"); }, "not valid JSON"},
    {"LeasesUsedUp",
     [](AuditTest& c) {
       c.PutRecord({0, 2}, {.nonce = Nonce(5, 5),
                            .bound = kNow + kMs,
                            .owner = "a/shop",
                            .lease = SlotLease{"shop", "a:1"}});
     },
     "rack 0: 0 of 1 machine ids for leases are free"},
    {"Frozen", [](AuditTest& c) { c.SetMeta([](ClusterMeta& m) { m.frozen = true; }); }, "frozen"},
    {"HalfMade",
     [](AuditTest& c) {
       c.SetMeta([](ClusterMeta& m) {
         m.frozen = true;
         m.reason = kBeingMade;
       });
       c.Erase(kClockPath);
       c.Erase(EraPath(c.Meta().era));
       c.EraseSlots(3);
     },
     "the cluster is only partly created; repeat firn init to complete it"},
    {"FloorFarAhead", [](AuditTest& c) { c.LiftFloor(kNow + 32 * kADay); }, "the floor is more"},
    {"LayoutUnreadable", [](AuditTest& c) { c.SetMeta([](ClusterMeta& m) { m.layout = "x"; }); },
     "the layout cannot be read"},
    {"EraMissing", [](AuditTest& c) { c.Erase(EraPath(c.Meta().era)); }, "era is missing"},
    {"EarlierEraExists", [](AuditTest& c) { c.Put(EraPath(Nonce(9, 9)), ""); },
     "earlier era still exists"},
    {"ClockMissing", [](AuditTest& c) { c.Erase(kClockPath); }, "clock node"},
    // The shape of the racks.
    {"HoleAmongWorkers",
     [](AuditTest& c) {
       c.Erase(SlotPath({1, 0}));
     },
     "rack 1: 1 of 3 records are missing, the first is worker 0's"},
    {"RackShorterThanOthers",
     [](AuditTest& c) {
       c.Erase(SlotPath({2, 2}));
     },
     "rack 2: 1 of 3 records are missing, the first is worker 2's"},
    {"RackLongerThanOthers", [](AuditTest& c) { c.LengthenThreeRacks(); },
     "rack 3: 1 of 4 records are missing, the first is worker 3's"},
    {"RackEmpty", [](AuditTest& c) { c.EraseSlots(3); },
     "rack 3: 3 of 3 records are missing, the first is worker 0's"},
    {"RackMissing", [](AuditTest& c) { c.EraseRack(3); }, "rack 3: 3 of 3 records are missing"},
    {"NoSlots", [](AuditTest& c) { c.EraseAllRacks(); }, "there are no slots"},
    {"ForeignRack", [](AuditTest& c) { c.Put(std::string(kMachinesPath) + "/9", ""); },
     "among the racks: '/machines/9'"},
    {"ForeignSlot", [](AuditTest& c) { c.Put(RackPath(0) + "/x", ""); },
     "among the slots of rack 0: '/machines/0/x'"},
    {"SlotBeyondTheLayout", [](AuditTest& c) { c.Put(RackPath(0) + "/256", ""); },
     "among the slots"},
    // Records.
    {"RecordUnreadable",
     [](AuditTest& c) {
       c.Put(SlotPath({0, 2}), "rubbish");
     },
     "not valid JSON"},
    {"Poison",
     [](AuditTest& c) {
       c.Hold({0, 1}, Nonce(1, 2), kNow + kADay + kMs);
     },
     "more than a day ahead"},
    {"SameNonce",
     [](AuditTest& c) {
       c.Hold({0, 1}, Nonce(1, 1), kNow);
     },
     "same nonce"},
    {"BeginsBeyondItsBound",
     [](AuditTest& c) {
       c.PutRecord({0, 1}, {.nonce = Nonce(1, 2), .bound = kNow, .since = kNow + kMs});
     },
     "begins beyond its bound"},
    {"RenewedPastARestore", [](AuditTest& c) { c.LiftFloor(kNow); }, "reaches above it"},
    // Live nodes.
    {"LiveOfAnotherClaim",
     [](AuditTest& c) {
       c.Live({0, 0}, Nonce(1, 2));
     },
     "another claim"},
    {"LiveUnreadable",
     [](AuditTest& c) {
       c.Put(LivePath({0, 0}), "rubbish", Lifetime::kEphemeral);
     },
     "its live node cannot be read: "},
    {"LiveForEver",
     [](AuditTest& c) {
       c.Put(LivePath({0, 0}), FormatLiveMark({"a:1", Nonce(1, 1)}));
     },
     "will never disappear"},
    {"LiveBeyondItsBound",
     [](AuditTest& c) {
       c.Hold({0, 1}, Nonce(1, 2), kNow - kMs);
       c.Live({0, 1}, Nonce(1, 2));
     },
     "cannot renew"},
    {"LiveAndRetired",
     [](AuditTest& c) {
       c.PutRecord({0, 1}, {.nonce = Nonce(1, 2), .bound = kNow, .retired = true});
       c.Live({0, 1}, Nonce(1, 2));
     },
     "was retired and is live"},
    // Servers' reports.
    {"ProviderNameUnreadable",
     [](AuditTest& c) { c.Put(std::string(kProvidersPath) + "/rubbish", ""); },
     "a provider's name cannot be read: 'rubbish': "},
    {"ReportUnreadable", [](AuditTest& c) { c.AnnounceAs("h:1", "rubbish"); },
     "h:1: its report cannot be read: is not valid JSON"},
    {"ProviderForEver",
     [](AuditTest& c) { c.AnnounceAs("h:1", R"({"state":"serving"})", Lifetime::kPersistent); },
     "will never disappear"},
    {"ClockOff", [](AuditTest& c) { c.Announce("h:1", 0, kNow + kMs, 1'001); }, "clock is off"},
    {"CannotClaim",
     [](AuditTest& c) {
       c.AnnounceAs("h:1", FormatReport({.reason = "this state folder is another's"}));
     },
     "h:1 cannot issue: this state folder is another's"},
    {"ServingServerRefusesTag",
     [](AuditTest& c) {
       c.AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady,
                                         .refused = {{"order", "unsupported: no store 'main'"}}}));
     },
     "h:1 refuses tag 'order': unsupported: no store 'main'"},
    {"ServingServerKeepsEarlierDefinition",
     [](AuditTest& c) {
       c.AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady,
                                         .outdated = {{"order", "no buffer = none"}}}));
     },
     "h:1 serves an earlier definition of tag 'order': no buffer = none"},
    {"ServingServerGetsNoMoreNumbers",
     [](AuditTest& c) {
       c.AnnounceAs("h:1",
                    FormatReport({.phase = ServerPhase::kReady,
                                  .unsupplied = {{"order", "UNAVAILABLE: store main: down"}}}));
     },
     "h:1 gets no more numbers for tag 'order': UNAVAILABLE: store main: down"},
    {"ServingServerWithoutMachineId",
     [](AuditTest& c) {
       c.AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady, .reason = "no free slot"}));
     },
     "h:1 refuses some calls: no free slot"},
    {"HolderThatWaitsForItsClock",
     [](AuditTest& c) {
       c.Hold({0, 0}, Nonce(1, 2), kNow + kMs);
       c.AnnounceAs("h:1", FormatReport({.reason = "the wall clock is 9 ms behind",
                                         .machine = MachineId(0),
                                         .bound = kNow + kMs}));
     },
     "h:1 cannot issue: the wall clock is 9 ms behind"},
    {"MoreRefusedTagsThanReported",
     [](AuditTest& c) { c.AnnounceAs("h:1", FormatReport({.refused_others = 7})); },
     "h:1 refuses 7 more tags"},
    {"RegistryClockNotBelieved",
     [](AuditTest& c) {
       c.AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady,
                                         .wall_skew_ms = 3'600'000,
                                         .clock_trouble = "the registry's clock is 1 h behind"}));
     },
     "h:1: the registry's clock is 1 h behind"},
    {"HolderHasLeft",
     [](AuditTest& c) {
       c.PutRecord({0, 1},
                   {.nonce = Nonce(1, 2), .bound = kNow + kMs, .owner = "b.1.1.0123456789abcdef"});
     },
     "rack 0 worker 1: its holder, b 0.0.0.1:1 on , has left without giving it back"},
    {"NoSuchMachine", [](AuditTest& c) { c.Announce("h:1", 1000, kNow); }, "there is no slot"},
    {"TwoOfOneMachine",
     [](AuditTest& c) {
       c.Announce("h:1", 0, kNow);
       c.Announce("h:2", 0, kNow);
     },
     "both report machine id 0"},
    {"BoundBelowTheReported", [](AuditTest& c) { c.Announce("h:1", 0, kNow + 2 * kMs); },
     "went back in time"},
    {"SecondBoundBelowTheReported",
     [](AuditTest& c) {
       c.Hold({1, 0}, Nonce(1, 2), kNow);
       c.AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady,
                                         .machine = MachineId(0),
                                         .bound = kNow + kMs,
                                         .more = {{MachineId(1), kNow + kMs}}}));
     },
     "h:1 holds machine id 1 until 2025-06-15T15:06:40.001Z, but its record says 2025-06-15T15:06:"
     "40.000Z: the registry went back in time"},
    {"TwoOfOneSecondMachine",
     [](AuditTest& c) {
       c.Announce("h:1", 0, kNow);
       c.AnnounceAs("h:2", FormatReport({.more = {{MachineId(0), kNow}}}));
     },
     "both report machine id 0"},
    {"ClaimedByAnother",
     [](AuditTest& c) {
       c.Live({0, 0}, Nonce(1, 1));
       c.Announce("h:1", 0, kNow + kMs);
     },
     "h:1 holds machine id 0 until 2025-06-15T15:06:40.001Z, and a:1 (a) has claimed it from "},
    {"OfAnotherCluster",
     [](AuditTest& c) {
       c.AnnounceAs("h:1", R"({"state":"not_ready",)"
                           R"("cluster":"6f1b0c7e-1f3a-4c55-9d0e-0123456789ab"})");
     },
     "h:1 cannot claim: its state folder belongs to cluster 6f1b0c7e"},
    {"WallClockOff",
     [](AuditTest& c) {
       c.AnnounceAs("h:1", R"({"state":"serving","clock_skew_ms":0,"wall_skew_ms":-1001})");
     },
     "its clock is off by -1001 ms; correct the clock"},
    {"OperatorsWordUnreadable", [](AuditTest& c) { c.Configure("h%3A1", R"({"weight":-1})"); },
     "the operator's setting for 'h:1' is ignored"},
    {"SettingForNoServer", [](AuditTest& c) { c.Configure("%", "{}"); }, "is ignored"},
    // Unguarded versions.
    {"RootIsUnguarded", [](AuditTest& c) { c.tree_.SetVersion(kMetaPath, -1); },
     "the cluster's root node has version -1, at which concurrent writes cannot be detected; run "
     "firn"},
    {"RecordIsUnguarded",
     [](AuditTest& c) {
       c.tree_.SetVersion(SlotPath({2, 1}), -1);
     },
     "rack 2 worker 1: its record has version -1"},
    {"TagIsUnguarded", [](AuditTest& c) { c.tree_.SetVersion(TagPath("order"), -1); },
     "the node of tag 'order' has version -1"},
    // Tags.
    {"TagUnreadable", [](AuditTest& c) { c.Put(TagPath("user"), "rubbish"); }, "tag 'user'"},
    {"LedgerBelowTheReported", [](AuditTest& c) { c.AnnounceHigh("order", 5'001); },
     "has seen the ledger of tag 'order' at 5001, but it is at 5000"},
    {"TagReportedAndGone", [](AuditTest& c) { c.AnnounceHigh("user", 1); },
     "numbers of tag 'user', which is missing"},
};

INSTANTIATE_TEST_SUITE_P(Damages, AuditFindsTest, testing::ValuesIn(kDamages),
                         [](const auto& of) { return std::string(of.param.name); });

TEST_F(AuditTest, CountsTheFaultsThatARestoreRepairs) {
  MakeProvidersFolder();
  MakeTag("order", 5'000);
  EXPECT_TRUE(Read().NeverUsed());
  AnnounceAs("h:1", R"({"state":"serving","wall_skew_ms":-5000})");
  EXPECT_EQ(Read().Losses(), 0u);
  AnnounceAs("h:2", FormatReport({.high = {{"order", 4'000}, {"user", 70}}}));
  Put(TagPath("broken"), "rubbish");
  Hold({0, 0}, Nonce(1, 1), kNow);
  for (const std::string& path : {std::string(kMetaPath), SlotPath({1, 1}), TagPath("order")}) {
    tree_.SetVersion(path, -1);
  }
  const Audit audit = Read();
  EXPECT_EQ(audit.Losses(), 5u);
  EXPECT_THAT(audit.lost_tags, ElementsAre(Pair("broken", 0), Pair("user", 70)));
  EXPECT_FALSE(audit.NeverUsed());
}

// No server can claim a retired record.
TEST_F(AuditTest, ARetiredRecordIsNotAFault) {
  Hold({0, 0}, Nonce(1, 1), kNow);
  PutRecord({0, 1}, {.nonce = Nonce(1, 1), .bound = kNow, .since = kNow + kMs, .retired = true});
  EXPECT_THAT(Read().Faults(), IsEmpty());
}

// --- not a fault ---------------------------------------------------------------------------------

TEST_F(AuditTest, ComparesEachMachineIdOfAServerWithItsOwnRecord) {
  MakeProvidersFolder();
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(9));
  Hold({1, 0}, Nonce(1, 2), kNow + Milliseconds(5));
  AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady,
                                  .machine = MachineId(0),
                                  .bound = kNow + Milliseconds(9),
                                  .more = {{MachineId(1), kNow + Milliseconds(5)}},
                                  .clock_skew_ms = 17}));
  const Audit audit = Read();
  EXPECT_THAT(audit.Faults(), IsEmpty());
  EXPECT_EQ(audit.slots[3].machine, MachineId(1));
  EXPECT_EQ(audit.slots[3].clock_skew_ms, 17);
}

TEST_F(AuditTest, AClusterSmallerThanItsLayoutIsComplete) {
  EraseSlotsOfWorker(2);
  EXPECT_THAT(Read().Faults(), IsEmpty());
}

// The holder was disconnected during the restore and issues ids up to its bound.
TEST_F(AuditTest, AClaimFromBeforeARestoreIsNotAFault) {
  Hold({0, 0}, Nonce(1, 1), kNow + kMs);
  LiftFloor(kNow + kMs);
  EXPECT_THAT(Read().Faults(), IsEmpty());
}

TEST_F(AuditTest, AReturnedTailIsNotAFault) {
  MakeProvidersFolder();
  MakeTag("order", 5'000, 100);
  AnnounceHigh("order", 5'100);
  EXPECT_THAT(Read().Faults(), IsEmpty());
}

TEST_F(AuditTest, NodesOfAKilledServerAreNotAFault) {
  MakeProvidersFolder();
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(9));
  Announce("h:1", 0, kNow + Milliseconds(5));
  Announce("h:1", 0, kNow + Milliseconds(9), 0, "another node of the same address");
  const Audit audit = Read();
  EXPECT_EQ(audit.providers.size(), 2u);
  EXPECT_THAT(audit.Faults(), IsEmpty());
}

TEST_F(AuditTest, ARenewalBetweenItsReadsIsNotAFault) {
  MakeProvidersFolder();
  const Slot slot{0, 0};
  Hold(slot, Nonce(1, 1), kNow + Milliseconds(5));
  Announce("h:1", 0, kNow + Milliseconds(5));
  const Audit audit = ReadWhile(SlotPath(slot), [&] {
    Hold(slot, Nonce(1, 1), kNow + Milliseconds(9));
    Announce("h:1", 0, kNow + Milliseconds(9));
  });
  EXPECT_THAT(audit.Faults(), IsEmpty());
}

TEST_F(AuditTest, AReleaseBetweenItsReadsIsNotAFault) {
  MakeProvidersFolder();
  const Slot slot{0, 0};
  Hold(slot, Nonce(1, 1), kNow + Milliseconds(9));
  Announce("h:1", 0, kNow + Milliseconds(9));
  Provider provider;
  provider.address = "h:1";
  provider.application = "a";
  const Audit audit = ReadWhile(ProviderPath(provider), [&] {
    registry_.Multi({Write::Erase(ProviderPath(provider), Write::kAnyVersion)});
    Hold(slot, Nonce(), kNow + Milliseconds(5));
  });
  EXPECT_THAT(audit.Faults(), IsEmpty());
}

TEST_F(AuditTest, AnotherClaimBetweenItsReadsIsNotAFault) {
  const Slot slot{0, 0};
  Hold(slot, Nonce(1, 1), kNow + Milliseconds(5));
  Live(slot, Nonce(1, 1));
  const Audit audit = ReadWhile(SlotPath(slot), [&] {
    Hold(slot, Nonce(2, 2), kNow + Milliseconds(9));
    Live(slot, Nonce(2, 2));
  });
  EXPECT_THAT(audit.Faults(), IsEmpty());
}

}  // namespace
}  // namespace firn
