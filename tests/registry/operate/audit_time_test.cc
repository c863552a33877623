// Tests audits of clusters whose ids are ahead of all clocks.

#include <string>

#include <gmock/gmock.h>

#include "registry/claim/claim_options.h"
#include "registry/claim/survey.h"
#include "tests/registry/operate/audit_fixture.h"

namespace firn {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// After many restores, ids are three days ahead.
constexpr Milliseconds kLead = 3 * kADay;
constexpr WallMs kFloor = kNow + kLead;

class AuditTimeTest : public AuditTest {
 protected:
  void Claim(Slot slot, Nonce nonce, WallMs bound, WallMs since = kFloor) {
    PutRecord(slot,
              {.nonce = nonce, .bound = bound, .owner = "b.1.1.0123456789abcdef", .since = since});
  }
  SlotUse UseOf(Slot slot) {
    for (const AuditedSlot& audited : Read().slots) {
      if (audited.slot == slot) return audited.use;
    }
    return SlotUse::kUnreadable;
  }
};

TEST_F(AuditTimeTest, JudgesBoundsByTheClustersTime) {
  LiftFloor(kFloor);
  Claim({0, 0}, Nonce(1, 1), kFloor + kADay);
  Live({0, 0}, Nonce(1, 1));
  Claim({0, 1}, Nonce(1, 2), kFloor);
  Claim({1, 0}, Nonce(1, 3), kNow + kMs, kNow);
  EXPECT_EQ(UseOf({0, 0}), SlotUse::kHeld);
  EXPECT_EQ(UseOf({0, 1}), SlotUse::kPassed);
  EXPECT_EQ(UseOf({1, 0}), SlotUse::kUnattended) << "it may issue until the clocks pass its bound";
  EXPECT_THAT(Read().Faults(), IsEmpty());
  Claim({1, 1}, Nonce(1, 4), kFloor + kADay + kMs);
  EXPECT_EQ(UseOf({1, 1}), SlotUse::kPoisoned);
  EXPECT_THAT(Read().Faults(), ElementsAre(HasSubstr("its bound is more than a day ahead")));
}

// A server decides by the same time whether it may claim the slot.
TEST_F(AuditTimeTest, AgreesWithTheServers) {
  LiftFloor(kFloor);
  for (const Milliseconds past : {-kADay, -kMs, Milliseconds(0), kMs, kADay, kADay + kMs}) {
    Claim({0, 0}, Nonce(1, 1), kFloor + past);
    const Audit audit = Read();
    SlotQuery query;
    query.now = audit.ClusterTimeAt(kNow);
    const SlotState state = StateOfSlot(audit.slots[0].record, query);
    EXPECT_EQ(audit.slots[0].use == SlotUse::kPoisoned, state == SlotState::kPoison);
    EXPECT_EQ(audit.slots[0].use == SlotUse::kPassed, state == SlotState::kPassed);
  }
}

TEST_F(AuditTimeTest, ReportsWhenTheClocksShowThatAMachineIdIsFree) {
  LiftFloor(kFloor);
  Claim({0, 0}, Nonce(1, 1), kFloor + kMs);
  EXPECT_THAT(Read().Faults(), ElementsAre(HasSubstr("it is free from 2025-06-15T15:06:40.001Z")));
}

// An unfinished restore has set its floor. It stores the lead of the eras before.
TEST_F(AuditTimeTest, TheFloorOfAnUnfinishedRestoreIsNoFault) {
  LiftFloor(kFloor);
  SetMeta([](ClusterMeta& meta) {
    meta.frozen = true;
    meta.reason = "the cluster is being restored";
  });
  Put(kRestorePath, FormatRestoreMemory({.plan = "p"}, Meta().era));
  const Audit audit = Read();
  ASSERT_TRUE(audit.unfinished);
  EXPECT_EQ(audit.Lead(), Milliseconds(0));
  EXPECT_THAT(audit.Faults(), ElementsAre(HasSubstr("the cluster is frozen")));
}

// The registry's clock was two days ahead during the restore.
TEST_F(AuditTimeTest, AFloorOfAWrongClockIsAFault) {
  clock_.Advance(2 * kADay);
  const Nonce era(7, 7);
  Erase(EraPath(Meta().era));
  Put(EraPath(era), "");
  SetMeta([&](ClusterMeta& meta) {
    meta.era = era;
    meta.floor = kNow + 2 * kADay + kMs;
  });
  EXPECT_THAT(Read().Faults(), ElementsAre(HasSubstr("the floor is more than a day ahead")));
}

}  // namespace
}  // namespace firn
