// What the audit makes of servers' own reports.

#include <gmock/gmock.h>

#include "tests/registry/operate/audit_fixture.h"

namespace firn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(AuditTest, IdsAheadOfARightClockAreNotAFault) {
  MakeProvidersFolder();
  LiftFloor(kNow + Milliseconds(43'200'000));
  AnnounceAs("h:1", R"({"state":"serving","clock_skew_ms":277314,"wall_skew_ms":3})");
  const Audit audit = Read();
  EXPECT_THAT(audit.faults, IsEmpty());
  EXPECT_THAT(audit.notes, ElementsAre(AllOf(HasSubstr("h:1: its clock is right"),
                                             HasSubstr("277314 ms ahead"), HasSubstr("floor"))));
}

TEST_F(AuditTest, ShowsTheSkewThatAServerReports) {
  MakeProvidersFolder();
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(1));
  Announce("h:1", 0, kNow + Milliseconds(1), 17);
  EXPECT_EQ(Read().slots[0].clock_skew_ms, 17);
  EXPECT_THAT(Read().faults, IsEmpty());
}

// Its own clock cannot tell which came later: it was set back between the two starts.
TEST_F(AuditTest, JudgesOnlyTheLatestProcessOfAnAddress) {
  MakeProvidersFolder();
  const auto announce = [this](WallMs since, const ProviderReport& report) {
    Provider provider;
    provider.address = "h:1";
    provider.since = since;
    Put(ProviderPath(provider), FormatReport(report), Lifetime::kEphemeral);
  };
  announce(kNow, {.phase = ServerPhase::kReady, .wall_skew_ms = 3'600'000});
  announce(kNow - Milliseconds(3'600'000),
           {.phase = ServerPhase::kReady, .clock_skew_ms = 3'600'000, .wall_skew_ms = 0});
  const Audit audit = Read();
  EXPECT_THAT(audit.faults, IsEmpty());
  EXPECT_THAT(audit.notes, ElementsAre(HasSubstr("its clock is right")));
}

}  // namespace
}  // namespace firn
