// Tests audits of servers' reports.

#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "common/base/cat.h"
#include "registry/claim/claim_checks.h"
#include "registry/operate/restore_command.h"
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
  EXPECT_THAT(audit.Faults(), IsEmpty());
  EXPECT_THAT(audit.Notes(), ElementsAre(AllOf(HasSubstr("h:1: its clock is right"),
                                               HasSubstr("277314 ms ahead"), HasSubstr("floor"))));
}

TEST_F(AuditTest, ShowsTheSkewThatAServerReports) {
  MakeProvidersFolder();
  Hold({0, 0}, Nonce(1, 1), kNow + Milliseconds(1));
  Announce("h:1", 0, kNow + Milliseconds(1), 17);
  EXPECT_EQ(Read().slots[0].clock_skew_ms, 17);
  EXPECT_THAT(Read().Faults(), IsEmpty());
}

// The server's clock was set back between two starts, so the start times do not show which process
// is later.
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
  EXPECT_THAT(audit.Faults(), IsEmpty());
  EXPECT_THAT(audit.Notes(), ElementsAre(HasSubstr("its clock is right")));
}

TEST_F(AuditTest, AServerThatHasJustStartedIsAFaultIfItsReasonLasts) {
  MakeProvidersFolder();
  const auto announce = [this](const std::string& address, const std::string& reason) {
    Provider provider;
    provider.address = address;
    provider.since = kNow;
    Put(ProviderPath(provider), FormatReport({.reason = reason}), Lifetime::kEphemeral);
  };
  announce("h:1", "no machine id yet: it has just started");
  EXPECT_THAT(Read().Faults(), IsEmpty());
  announce("h:2", Cat("no machine id yet: ", kKeptFault, "/var/lib/firn/a.leases: invalid"));
  EXPECT_THAT(Read().Faults(), ElementsAre(AllOf(HasSubstr("h:2 cannot issue: "),
                                                 HasSubstr("/var/lib/firn/a.leases"))));
}

struct CertificateRow {
  Milliseconds left;
  Urgency urgency;
};

TEST_F(AuditTest, ACertificateIsAsUrgentAsItsEnd) {
  MakeProvidersFolder();
  constexpr Milliseconds kDay = std::chrono::days(1);
  const CertificateRow rows[] = {{-kDay, Urgency::kRefused},
                                 {Milliseconds(0), Urgency::kRefused},
                                 {6 * kDay, Urgency::kSoon},
                                 {20 * kDay, Urgency::kNote}};
  int servers = 0;
  for (const auto& [left, urgency] : rows) {
    AnnounceAs(
        "h:" + std::to_string(++servers),
        FormatReport({.phase = ServerPhase::kReady,
                      .certificates = {{"public", kNow + left}, {"admin", kNow + 31 * kDay}}}));
  }
  const std::vector<AuditFinding> findings = ByUrgency(Read().findings, "");
  ASSERT_EQ(findings.size(), std::size(rows));
  for (size_t i = 0; i < findings.size(); ++i) {
    EXPECT_EQ(findings[i].urgency, rows[i].urgency) << findings[i].what;
    EXPECT_THAT(findings[i].what, HasSubstr("the TLS certificate of the public port"));
    EXPECT_THAT(findings[i].fix, HasSubstr("SIGHUP"));
  }
}

TEST_F(AuditTest, ReportsLostHistory) {
  MakeProvidersFolder();
  AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady, .history_lost = true}));
  EXPECT_THAT(Read().Faults(), ElementsAre(HasSubstr("loses records of the plugin history")));
}

TEST_F(AuditTest, ReportsAnOverloadedServer) {
  MakeProvidersFolder();
  AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady, .overloaded = true}));
  const std::vector<AuditFinding> findings = Read().findings;
  ASSERT_EQ(findings.size(), 1u);
  EXPECT_EQ(findings[0].urgency, Urgency::kRefused);
  EXPECT_THAT(findings[0].what, HasSubstr("h:1 refuses calls (OVERLOADED)"));
  EXPECT_THAT(findings[0].fix, HasSubstr("add servers"));
}

// Another cluster's restore command would repair the wrong data.
TEST_F(AuditTest, ReportsAServerWithoutAGrant) {
  MakeProvidersFolder();
  AnnounceAs("h:1", FormatReport({.grant_trouble = "no grant file"}));
  EXPECT_THAT(Read().Faults(), ElementsAre("h:1: no grant file"));
}

TEST_F(AuditTest, AForeignServerComesFirstAndWithdrawsTheRestoreCommand) {
  MakeProvidersFolder();
  AnnounceAs("h:1", FormatReport({.phase = ServerPhase::kReady,
                                  .high = {{"lost", 7}},
                                  .refused = {{"t", "unsupported: no store"}}}));
  ASSERT_GT(Read().Losses(), 0u);
  EXPECT_EQ(RepairCommand(Read(), {.registry = "dir:///r"}), "") << "h:1 knows the lost tag";
  AnnounceAs("h:2", FormatReport({.phase = ServerPhase::kReady,
                                  .cluster = "6f9619ff-8b86-4d11-b42d-00c04fc964ff"}));
  const Audit audit = Read();
  EXPECT_EQ(RepairCommand(audit, {.registry = "dir:///r"}), "");
  const std::vector<AuditFinding> findings = ByUrgency(audit.findings, "");
  ASSERT_FALSE(findings.empty());
  EXPECT_THAT(findings.front().what, HasSubstr("h:2 cannot claim"));
  for (const AuditFinding& finding : findings) EXPECT_NE(finding.fix, "") << finding.what;
}

TEST_F(AuditTest, SortsFindingsByUrgencyAndKeepsTheirOrder) {
  const std::vector<AuditFinding> sorted = ByUrgency({{Urgency::kNote, "note"},
                                                      {Urgency::kRefused, "first"},
                                                      {Urgency::kData, "lost", "", true},
                                                      {Urgency::kRefused, "second", "a fix"}},
                                                     "the command");
  std::string order;
  for (const AuditFinding& finding : sorted) order += finding.what + "[" + finding.fix + "] ";
  EXPECT_EQ(order, "lost[the command] first[] second[a fix] note[] ");
}

}  // namespace
}  // namespace firn
