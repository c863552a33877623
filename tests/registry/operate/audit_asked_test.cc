// Tests audits with direct requests to the servers.

#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "registry/operate/audit_server.h"
#include "tests/registry/operate/audit_fixture.h"

namespace firn {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::StartsWith;

AuditedProvider Server() {
  AuditedProvider server;
  server.provider.address = "h:1";
  server.report = {.phase = ServerPhase::kReady,
                   .refused = {{"old", "lost: gone"}, {"order", "no_numbers: a...z"}},
                   .refused_others = 7,
                   .outdated = {{"user", "no room"}, {"far", "unlisted"}},
                   .unsupplied = {{"user", "the store is away"}}};
  return server;
}

TEST(TakeStatusTest, PrefersTheStatusToTheShortenedReport) {
  AuditedProvider server = Server();
  std::vector<AuditFinding> findings;
  ASSERT_EQ(TakeStatus(R"({"address": "h:1", "registry": {"connected": true},
      "refused_tags": [
        {"tag": "order", "state": "no_numbers", "reason": "STORE_DOWN", "why": "the whole reason"},
        {"tag": "off", "state": "disabled", "reason": "REJECTED", "why": "disabled"}],
      "refused_tags_count": 5,
      "tags": [{"tag": "user", "strategy": "segment", "issued": 3},
               {"tag": "bill", "trouble": "store main: down", "outdated": "no buffer = none"},
               {"tag": "order", "trouble": "store main: down"}]})",
                       server, findings),
            Status());
  EXPECT_THAT(server.report.refused, ElementsAre(Pair("order", "no_numbers: the whole reason")));
  EXPECT_EQ(server.report.refused_others, 3);
  EXPECT_THAT(server.report.outdated,
              ElementsAre(Pair("bill", "no buffer = none"), Pair("far", "unlisted")));
  EXPECT_THAT(server.report.unsupplied, ElementsAre(Pair("bill", "store main: down")))
      << "a refused tag is a finding of its own";
  EXPECT_THAT(findings, IsEmpty());
}

TEST(TakeStatusTest, ReplacesWhetherItIsOverloaded) {
  for (const bool overloaded : {true, false}) {
    AuditedProvider server = Server();
    server.report.overloaded = !overloaded;
    std::vector<AuditFinding> findings;
    const std::string member = overloaded ? "true" : "false";
    ASSERT_EQ(TakeStatus(R"({"address": "h:1", "overloaded": )" + member + "}", server, findings),
              Status());
    EXPECT_EQ(server.report.overloaded, overloaded);
  }
}

TEST(TakeStatusTest, ReportsARefusedReloadAndALostRegistry) {
  AuditedProvider server = Server();
  std::vector<AuditFinding> findings;
  ASSERT_EQ(TakeStatus(R"({"address": "h:1", "bound": "2026-11-26 06:00:00 UTC",
      "registry": {"connected": false},
      "last_reload": {"time": "2026-11-26 05:00:00 UTC", "files": [], "faults": ["tls_cert x"]}})",
                       server, findings),
            Status());
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_THAT(findings[0].what, AllOf(StartsWith("h:1: its last reload, at 2026-11-26 05:00:00"),
                                      HasSubstr("refused a file: tls_cert x")));
  EXPECT_THAT(findings[0].fix, HasSubstr("reload the server"));
  EXPECT_EQ(findings[1].what,
            "h:1 has lost its connection to the registry; it issues ids until "
            "2026-11-26 06:00:00 UTC");
  EXPECT_EQ(server.report, Server().report) << "an answer without tags says nothing of them";
}

// The address may lead to another program, for example at the admin port of another host's
// loopback.
TEST(TakeStatusTest, RefusesAnAnswerThatIsNotThisServers) {
  for (const char* json : {"", "ok", "[]", "{", "{}", R"({"address": "h:2", "refused_tags": []})",
                           R"({"address": 7})"}) {
    AuditedProvider server = Server();
    std::vector<AuditFinding> findings;
    EXPECT_FALSE(TakeStatus(json, server, findings).ok()) << json;
    EXPECT_EQ(server.report, Server().report) << json;
    EXPECT_THAT(findings, IsEmpty());
  }
}

TEST(TakeStatusTest, IgnoresMembersOfOtherTypes) {
  for (const char* member :
       {R"("refused_tags": {}, "refused_tags_count": 1)", R"("refused_tags": [])",
        R"("refused_tags": [], "refused_tags_count": "1")", R"("tags": 7)", R"("tags": [7, null])",
        R"("last_reload": [])", R"("last_reload": {"faults": {}})",
        R"("last_reload": {"faults": [7]})", R"("registry": 7)", R"("registry": {})",
        R"("overloaded": 1)"}) {
    AuditedProvider server = Server();
    std::vector<AuditFinding> findings;
    EXPECT_TRUE(
        TakeStatus(std::string(R"({"address": "h:1", )") + member + "}", server, findings).ok())
        << member;
    EXPECT_EQ(server.report, Server().report) << member;
    EXPECT_THAT(findings, IsEmpty()) << member;
  }
}

TEST_F(AuditTest, AsksThePresentServersAndJudgesTheirAnswers) {
  MakeProvidersFolder();
  const auto refusing = [](const std::string& why) {
    return FormatReport(
        {.phase = ServerPhase::kReady, .refused = {{"order", "no_numbers: " + why}}});
  };
  AnnounceAs("h:1", refusing("short"));
  AnnounceAs("h:2", refusing("of h:2"));
  std::vector<std::string> asked;
  const Audit audit = *ReadAudit(registry_, kNow, [&](const std::vector<AuditedProvider>& servers) {
    std::vector<Result<std::string>> answers;
    for (const AuditedProvider& server : servers) {
      asked.push_back(server.provider.address);
      answers.push_back(Unavailable("connection refused"));
    }
    answers[0] = std::string(R"({"address": "h:1", "refused_tags": [
        {"tag": "order", "state": "no_numbers", "why": "whole"}], "refused_tags_count": 1})");
    return answers;
  });
  EXPECT_THAT(asked, ElementsAre("h:1", "h:2"));
  EXPECT_THAT(audit.Faults(), ElementsAre("h:1 refuses tag 'order': no_numbers: whole",
                                          "h:2 refuses tag 'order': no_numbers: of h:2"));
  ASSERT_EQ(audit.asked.size(), 2u);
  EXPECT_EQ(audit.asked[0].address, "h:1");
  EXPECT_TRUE(audit.asked[0].heard.ok());
  EXPECT_EQ(audit.asked[1].heard.message(), "connection refused");
  EXPECT_THAT(Read().asked, IsEmpty()) << "an audit of the registry alone asks no server";
}

}  // namespace
}  // namespace firn
