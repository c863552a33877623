#include "registry/audit.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "registry/cluster_setup.h"
#include "registry/memory_coordinator.h"
#include "registry/tag_store.h"
#include "tests/support/busy_coordinator.h"
#include "tests/support/virtual_clock.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr WallMs kNow{1'750'000'000'000};
constexpr Milliseconds kMs{1};

class AuditTest : public testing::Test {
 public:
  void SetUp() override {
    ASSERT_TRUE(registry_.Connect(Milliseconds(0)).ok());
    ASSERT_TRUE(MakeCluster(registry_, {.workers = 3}, entropy_).ok());
  }

  void Put(const std::string& path, const std::string& data,
           Lifetime lifetime = Lifetime::kPersistent) {
    if (registry_.Read(path).ok()) {
      ASSERT_TRUE(registry_.Multi({Write::Set(path, data, Write::kAnyVersion)}).status.ok());
    } else {
      ASSERT_TRUE(registry_.Multi({Write::Create(path, data, lifetime)}).status.ok()) << path;
    }
  }
  void Erase(const std::string& path) {
    const auto erased = registry_.Multi({Write::Erase(path, Write::kAnyVersion)});
    ASSERT_TRUE(erased.status.ok()) << erased.status;
  }
  void EraseSlots(uint32_t rack) {
    for (uint32_t worker = 0; worker < 3; ++worker) Erase(SlotPath({rack, worker}));
  }
  void EraseSlotsOfWorker(uint32_t worker) {
    for (uint32_t rack = 0; rack < 4; ++rack) Erase(SlotPath({rack, worker}));
  }
  void EraseRack(uint32_t rack) {
    EraseSlots(rack);
    Erase(RackPath(rack));
  }
  void EraseAllRacks() {
    for (uint32_t rack = 0; rack < 4; ++rack) EraseRack(rack);
    Erase(kMachinesPath);
  }
  void LengthenThreeRacks() {
    for (uint32_t rack = 0; rack < 3; ++rack) PutRecord({rack, 3}, {});
  }
  void LoseData() {
    tree_.Wipe();
    coordinator_.Dispatch(Milliseconds(0));
  }

  ClusterMeta Meta() { return *ParseMeta(tree_.Peek(kMetaPath)->data); }
  void SetMeta(const std::function<void(ClusterMeta&)>& change) {
    ClusterMeta meta = Meta();
    change(meta);
    Put(kMetaPath, FormatMeta(meta));
  }
  void LiftFloor(WallMs floor) {
    SetMeta([&](ClusterMeta& meta) { meta.floor = floor; });
  }
  void PutRecord(Slot slot, const SlotRecord& record) {
    Put(SlotPath(slot), FormatSlotRecord(record));
  }
  void Hold(Slot slot, Nonce nonce, WallMs bound) {
    PutRecord(slot, {.nonce = nonce, .bound = bound, .owner = "a"});
  }
  void Live(Slot slot, Nonce nonce) {
    Put(LivePath(slot), FormatLiveMark({"a:1", nonce}), Lifetime::kEphemeral);
  }
  void Announce(const std::string& address, uint32_t machine, WallMs bound, int64_t skew = 0,
                const std::string& application = "a") {
    Provider provider;
    provider.address = address;
    provider.application = application;
    const ProviderReport report{.phase = ProviderPhase::kServing,
                                .machine = MachineId(machine),
                                .bound = bound,
                                .clock_skew_ms = skew};
    Put(ProviderPath(provider), FormatReport(report), Lifetime::kEphemeral);
  }
  void AnnounceAs(const std::string& address, const std::string& report,
                  Lifetime lifetime = Lifetime::kEphemeral) {
    Provider provider;
    provider.address = address;
    Put(ProviderPath(provider), report, lifetime);
  }
  void AnnounceHigh(const std::string& tag, int64_t high) {
    AnnounceAs("h:1", FormatReport({.high = {{tag, high}}}));
  }
  void Configure(const std::string& name, const std::string& data) {
    Put(std::string(kConfiguratorsPath), "");
    Put(std::string(kConfiguratorsPath) + "/" + name, data);
  }
  void MakeTag(const std::string& name, int64_t high, int64_t returned = 0) {
    TagNode node;
    node.tag.name = name;
    node.tag.strategy = "segment";
    node.tag.high = high;
    node.returned = returned;
    Put(std::string(kTagsPath), "");
    Put(TagPath(name), *WriteTagNode(node));
  }
  static std::string ProviderPath(const Provider& provider) {
    return std::string(kProvidersPath) + "/" + ProviderNodeName(provider);
  }
  void MakeProvidersFolder() {
    Put(std::string(kServicePath), "");
    Put(std::string(kProvidersPath), "");
  }
  Audit Read() { return *ReadAudit(registry_, kNow); }
  // An audit, while something happens right after the node was read.
  Audit ReadWhile(const std::string& path, std::function<void()> happens) {
    BusyCoordinator busy(coordinator_);
    busy.OnceAfterReading(path, std::move(happens));
    BlockingCoordinator registry(busy, clock_);
    EXPECT_TRUE(registry.Connect(Milliseconds(0)).ok());
    return *ReadAudit(registry, kNow);
  }
  VirtualClock clock_{kNow};
  MemoryTree tree_{clock_};
  MemoryCoordinator coordinator_{tree_};
  BlockingCoordinator registry_{coordinator_, clock_};
  SeededEntropy entropy_{1};
};

TEST_F(AuditTest, ANewClusterHasNoFaults) {
  const Audit audit = Read();
  EXPECT_THAT(audit.faults, IsEmpty());
  EXPECT_EQ(audit.slots.size(), 12u);
  EXPECT_EQ(audit.slots[5].machine, MachineId(9));
  EXPECT_EQ(audit.slots[5].use, SlotUse::kNeverUsed);
}

TEST_F(AuditTest, ShowsHowEachSlotStands) {
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
  EXPECT_THAT(audit.faults, IsEmpty());
}

// One thing that is wrong in a cluster where all else is right, and the words that say so.
struct Damage {
  const char* name;
  void (*inflict)(AuditTest& cluster);
  const char* words;
};

std::ostream& operator<<(std::ostream& out, const Damage& damage) { return out << damage.name; }

class AuditFindsTest : public AuditTest, public testing::WithParamInterface<Damage> {};

TEST_P(AuditFindsTest, ItAndNothingElse) {
  MakeProvidersFolder();
  MakeTag("order", 5'000);
  Hold({0, 0}, Nonce(1, 1), kNow + kMs);
  ASSERT_THAT(Read().faults, IsEmpty());
  GetParam().inflict(*this);
  EXPECT_THAT(Read().faults, ElementsAre(HasSubstr(GetParam().words)));
}

constexpr Milliseconds kDay{86'400'000};

const Damage kDamages[] = {
    // The root node and what stands beside it.
    {"NoCluster", [](AuditTest& c) { c.LoseData(); }, "there is no cluster here"},
    {"RootUnreadable", [](AuditTest& c) { c.Put(kMetaPath, "rubbish"); }, "not JSON"},
    {"Frozen", [](AuditTest& c) { c.SetMeta([](ClusterMeta& m) { m.frozen = true; }); }, "frozen"},
    {"FloorFarAhead", [](AuditTest& c) { c.LiftFloor(kNow + kDay + kMs); }, "the floor lies more"},
    {"LayoutUnreadable", [](AuditTest& c) { c.SetMeta([](ClusterMeta& m) { m.layout = "x"; }); },
     "the layout cannot be read"},
    {"EraMissing", [](AuditTest& c) { c.Erase(EraPath(c.Meta().era)); }, "era is missing"},
    {"EraThatIsOver", [](AuditTest& c) { c.Put(EraPath(Nonce(9, 9)), ""); }, "era that is over"},
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
     "among the racks"},
    {"ForeignSlot", [](AuditTest& c) { c.Put(RackPath(0) + "/x", ""); }, "among the slots"},
    {"SlotBeyondTheLayout", [](AuditTest& c) { c.Put(RackPath(0) + "/256", ""); },
     "among the slots"},
    // Records.
    {"RecordUnreadable",
     [](AuditTest& c) {
       c.Put(SlotPath({0, 2}), "rubbish");
     },
     "not JSON"},
    {"Poison",
     [](AuditTest& c) {
       c.Hold({0, 1}, Nonce(1, 2), kNow + kDay + kMs);
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
    // What is live.
    {"LiveOfAnotherClaim",
     [](AuditTest& c) {
       c.Live({0, 0}, Nonce(1, 2));
     },
     "another claim"},
    {"LiveUnreadable",
     [](AuditTest& c) {
       c.Put(LivePath({0, 0}), "rubbish", Lifetime::kEphemeral);
     },
     "not JSON"},
    {"LiveForEver",
     [](AuditTest& c) {
       c.Put(LivePath({0, 0}), FormatLiveMark({"a:1", Nonce(1, 1)}));
     },
     "will never go"},
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
    // What servers say.
    {"ProviderNameUnreadable",
     [](AuditTest& c) { c.Put(std::string(kProvidersPath) + "/rubbish", ""); }, "provider's name"},
    {"ReportUnreadable", [](AuditTest& c) { c.AnnounceAs("h:1", "rubbish"); }, "h:1: not a JSON"},
    {"ProviderForEver",
     [](AuditTest& c) { c.AnnounceAs("h:1", R"({"state":"serving"})", Lifetime::kPersistent); },
     "will never go"},
    {"ClockOff", [](AuditTest& c) { c.Announce("h:1", 0, kNow + kMs, 1'001); }, "clock is off"},
    {"NoSuchMachine", [](AuditTest& c) { c.Announce("h:1", 1000, kNow); }, "there is no slot"},
    {"TwoOfOneMachine",
     [](AuditTest& c) {
       c.Announce("h:1", 0, kNow);
       c.Announce("h:2", 0, kNow);
     },
     "both report machine id 0"},
    {"BoundBelowTheReported", [](AuditTest& c) { c.Announce("h:1", 0, kNow + 2 * kMs); },
     "went back in time"},
    {"OperatorsWordUnreadable", [](AuditTest& c) { c.Configure("h%3A1", R"({"weight":-1})"); },
     "the operator's word on 'h:1' does not count"},
    {"OperatorsWordOnNobody", [](AuditTest& c) { c.Configure("%", "{}"); }, "does not count"},
    // Tags.
    {"TagUnreadable", [](AuditTest& c) { c.Put(TagPath("user"), "rubbish"); }, "tag 'user'"},
    {"LedgerBelowTheReported", [](AuditTest& c) { c.AnnounceHigh("order", 5'001); },
     "has seen the ledger of tag 'order' at 5001, but it is at 5000"},
    {"TagReportedAndGone", [](AuditTest& c) { c.AnnounceHigh("user", 1); },
     "numbers of tag 'user', which is not there"},
};

INSTANTIATE_TEST_SUITE_P(Damages, AuditFindsTest, testing::ValuesIn(kDamages),
                         [](const auto& of) { return std::string(of.param.name); });

// --- what only looks wrong -----------------------------------------------------------------------

TEST_F(AuditTest, ShowsTheSkewThatAServerReports) {
  MakeProvidersFolder();
  Hold({0, 0}, Nonce(1, 1), kNow + kMs);
  Announce("h:1", 0, kNow + kMs, 17);
  EXPECT_EQ(Read().slots[0].clock_skew_ms, 17);
  EXPECT_THAT(Read().faults, IsEmpty());
}

TEST_F(AuditTest, AClusterSmallerThanItsLayoutIsWhole) {
  EraseSlotsOfWorker(2);
  EXPECT_THAT(Read().faults, IsEmpty());
}

// Its holder was cut off during the restore and goes on up to its bound.
TEST_F(AuditTest, AClaimFromBeforeARestoreIsNoFault) {
  Hold({0, 0}, Nonce(1, 1), kNow + kMs);
  LiftFloor(kNow + kMs);
  EXPECT_THAT(Read().faults, IsEmpty());
}

TEST_F(AuditTest, ATailThatWasGivenBackIsNoFault) {
  MakeProvidersFolder();
  MakeTag("order", 5'000, 100);
  AnnounceHigh("order", 5'100);
  EXPECT_THAT(Read().faults, IsEmpty());
}

TEST_F(AuditTest, WhatAKilledServerLeftBehindIsNoFault) {
  MakeProvidersFolder();
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(9));
  Announce("h:1", 0, kNow + Milliseconds(5));
  Announce("h:1", 0, kNow + Milliseconds(9), 0, "another node of the same address");
  const Audit audit = Read();
  EXPECT_EQ(audit.providers.size(), 2u);
  EXPECT_THAT(audit.faults, IsEmpty());
}

TEST_F(AuditTest, ARenewalBetweenItsReadsIsNoFault) {
  MakeProvidersFolder();
  const Slot slot{0, 0};
  Hold(slot, Nonce(1, 1), kNow + Milliseconds(5));
  Announce("h:1", 0, kNow + Milliseconds(5));
  const Audit audit = ReadWhile(SlotPath(slot), [&] {
    Hold(slot, Nonce(1, 1), kNow + Milliseconds(9));
    Announce("h:1", 0, kNow + Milliseconds(9));
  });
  EXPECT_THAT(audit.faults, IsEmpty());
}

TEST_F(AuditTest, AReleaseBetweenItsReadsIsNoFault) {
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
  EXPECT_THAT(audit.faults, IsEmpty());
}

TEST_F(AuditTest, AnotherClaimBetweenItsReadsIsNoFault) {
  const Slot slot{0, 0};
  Hold(slot, Nonce(1, 1), kNow + Milliseconds(5));
  Live(slot, Nonce(1, 1));
  const Audit audit = ReadWhile(SlotPath(slot), [&] {
    Hold(slot, Nonce(2, 2), kNow + Milliseconds(9));
    Live(slot, Nonce(2, 2));
  });
  EXPECT_THAT(audit.faults, IsEmpty());
}

}  // namespace
}  // namespace firn
