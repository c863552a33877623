// Servers whose tags take numbers from databases over TLS, set up by the commands of DATABASES.md.

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>

#include "common/base/cat.h"
#include "common/json/json.h"
#include "tests/server/program/running_server.h"
#include "tests/server/program/tls_databases.h"
#include "tests/support/database/ferret_db.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// The blocks of one section of the page: commands, and the section of a stores file.
struct Guide {
  std::string commands{};
  std::string last_command{};
  std::string section{};
};

Guide GuideOf(const std::string& title) {
  std::ifstream page(FIRN_SOURCE_DIR "/server/store/DATABASES.md");
  Guide guide;
  bool here = false, of_ini = false, continued = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("#")) here = line == "### " + title;
    if (!here) continue;
    if (!line.starts_with("    ")) {
      of_ini = false;
      continue;
    }
    line = line.substr(4);
    of_ini = of_ini || line.starts_with("[");
    (of_ini ? guide.section : guide.commands) += line + "\n";
    if (!of_ini) guide.last_command = continued ? guide.last_command + "\n" + line : line;
    continued = line.ends_with("\\");
  }
  return guide;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != text.npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

class NetworkStores {
 protected:
  void Begin(const std::string& kind, TlsFault fault) {
    if (kind == "mongo" && !FerretDb::IsBuilt()) GTEST_SKIP() << "FerretDB requires Go 1.24";
    if (fault == TlsFault::kExpired && !authority_.SignForSeconds("expired", -60, "IP:127.0.0.1")) {
      GTEST_SKIP() << "no libfaketime";
    }
    database_ = MakeTlsDatabase(kind);
    authority_.Sign("server", "IP:127.0.0.1");
    authority_.Sign("elsewhere", "DNS:other.example");
    ASSERT_EQ(database_->Start(authority_, fault), Status());
    guide_ = GuideOf(database_->title());
    ASSERT_NE(guide_.section, "") << "the page has no section " << database_->title();
    if (database_->has_accounts()) Paste(guide_.commands + database_->after());
  }

  // Writes the page's section as the stores file. `trusted` replaces the page's file of
  // authorities.
  void WriteStores(const TlsAuthority& trusted) {
    std::istringstream lines(guide_.section);
    std::ofstream file(folder_ / "stores.ini");
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("address = ")) line = Cat("address = 127.0.0.1:", database_->port());
      if (line.starts_with("tls_ca = ")) line = "tls_ca = " + trusted.File("ca.crt");
      if (!database_->has_accounts() && line.starts_with("credentials_file = ")) continue;
      if (!database_->has_accounts() && line.starts_with("replica_set = ")) continue;
      file << Replaced(line, "/etc/firn/", folder_ / "") << "\n";
    }
  }

  // Starts the server and runs the page's commands for servers.
  void StartServer(bool issues) {
    server_ = std::make_unique<RunningServer>(
        folder_ / "state", std::vector<std::string>{"--registry=" + registry(),
                                                    "--stores_file=" + (folder_ / "stores.ini")});
    Guide servers = GuideOf("The servers");
    const std::string without_service =
        Replaced(servers.commands, "systemctl restart firn-server\n", "");
    ASSERT_NE(without_service, servers.commands);
    const std::string only_commands =
        issues ? without_service : Replaced(without_service, "curl ", "true ");
    ASSERT_TRUE(server_->BecomesReady()) << server_->log();
    ASSERT_NO_FATAL_FAILURE(Paste(only_commands));
    if (!issues) return;
    EXPECT_THAT(printed_, HasSubstr("{\"tag\":\"order\",\"ids\":["));
  }

  // Runs commands of the page in a shell, with the addresses and files of this test.
  void Paste(std::string commands) {
    commands = Replaced(std::move(commands), "/usr/share/firn/", FIRN_SOURCE_DIR "/tools/package/");
    commands = Replaced(std::move(commands), "/etc/firn/", folder_ / "");
    commands = Replaced(std::move(commands), "-o firn ", "-o $(id -un) ");
    if (server_ != nullptr) {
      commands = Replaced(std::move(commands), "127.0.0.1:7609", server_->address());
    }
    const std::string firn = BuiltProgram("firn");
    const Finished done = RunToEnd({"bash", "-c",
                                    Cat("set -e\n", database_->shell(), "firn() { ", firn,
                                        " \"$@\" --registry=", registry(), "; }\n", commands)});
    printed_ = done.out;
    ASSERT_EQ(done.exit_code, 0) << commands << done.out << done.err;
    ASSERT_THAT(done.out + done.err, testing::Not(HasSubstr("ERR"))) << commands;
  }

  // Takes an id, repeating until there is one.
  int64_t TakeId(const std::string& tag) const {
    RunningServer::Answer answer;
    const bool came = Eventually(
        kPatience, [&] { return (answer = server_->Get("/v1/ids/" + tag)).status == 200; });
    EXPECT_TRUE(came) << answer.body << server_->log();
    const Json json = JsonOf(answer.body);
    return came ? std::stoll(json.at("ids").at(0).text()) : -1;
  }

  // Waits until calls for the tag are refused with all of these words.
  void ExpectRefused(const std::string& tag, const std::vector<std::string>& words) const {
    RunningServer::Answer answer;
    const auto says = [&](const std::string& text) {
      return std::ranges::all_of(
          words, [&](const std::string& word) { return text.find(word) != text.npos; });
    };
    EXPECT_TRUE(Eventually(kPatience,
                           [&] {
                             answer = server_->Get("/v1/ids/" + tag);
                             return answer.status == 503 && says(answer.body);
                           }))
        << answer.body << testing::PrintToString(words);
  }

  std::string registry() const { return "dir://" + (folder_ / "registry"); }

  TempDir folder_;
  TlsAuthority authority_{"authority of databases"};
  std::unique_ptr<TlsDatabase> database_;
  Guide guide_;
  std::unique_ptr<RunningServer> server_;
  std::string printed_;  // by the last commands
};

// --- set up as the page says --------------------------------------------------------------------

class StoreGuideTest : public NetworkStores, public testing::TestWithParam<std::string> {};

TEST_P(StoreGuideTest, IssuesIdsAndNamesALackingRight) {
  Begin(GetParam(), TlsFault::kNone);
  if (HasFatalFailure() || IsSkipped()) return;
  WriteStores(authority_);
  ASSERT_NO_FATAL_FAILURE(StartServer(true));
  const int64_t first = TakeId("order");
  server_->Kill();
  server_->StartAgain();
  ASSERT_TRUE(server_->BecomesReady()) << server_->log();
  EXPECT_GT(TakeId("order"), first);

  int tags = 0;
  for (const auto& [take_away, named] : database_->rights()) {
    const std::string tag = "tag" + std::to_string(++tags);
    ASSERT_NO_FATAL_FAILURE(Paste(take_away));
    ASSERT_NO_FATAL_FAILURE(Paste("firn tags create " + tag + " strategy=segment store=main"));
    ExpectRefused(tag, {"STORE_DOWN", "store main: ", named});
    ASSERT_NO_FATAL_FAILURE(Paste(guide_.last_command));
    EXPECT_GT(TakeId(tag), 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Databases, StoreGuideTest,
                         testing::Values("mysql", "postgres", "mongo", "redis"),
                         [](const auto& tested) { return tested.param; });

// --- certificates that are refused --------------------------------------------------------------

// One fault in CI; all of them with FIRN_TLS_MATRIX, as in tools/release-check.
std::vector<TlsFault> TestedFaults() {
  if (std::getenv("FIRN_TLS_MATRIX") == nullptr) return {TlsFault::kAuthority};
  return {TlsFault::kAuthority, TlsFault::kName, TlsFault::kExpired, TlsFault::kNoTls,
          TlsFault::kNoClientCertificate};
}

// Returns the end of the error. MongoDB's library does not report that a server lacks TLS.
std::string RemedyOf(const std::string& kind, TlsFault fault, const TlsAuthority& trusted) {
  if (fault == TlsFault::kNoClientCertificate) return "set tls_cert and tls_key";
  const bool silent = kind == "mongo" && fault == TlsFault::kNoTls;
  return Cat("tls_ca = ", trusted.File("ca.crt"), "); ",
             silent ? "check that the server uses TLS and does not hang"
                    : "check the server's certificate and these settings");
}

class StoreTlsTest : public NetworkStores,
                     public testing::TestWithParam<std::tuple<std::string, TlsFault>> {};

TEST_P(StoreTlsTest, EverySurfaceNamesTheFileAndTheRemedy) {
  const auto& [kind, fault] = GetParam();
  Begin(kind, fault);
  if (HasFatalFailure() || IsSkipped()) return;
  const TlsAuthority other("another authority");
  const TlsAuthority& trusted = fault == TlsFault::kAuthority ? other : authority_;
  WriteStores(trusted);
  ASSERT_NO_FATAL_FAILURE(StartServer(false));

  const std::string address = Cat("127.0.0.1:", database_->port());
  const std::string remedy = RemedyOf(kind, fault, trusted);
  ExpectRefused("order", {"STORE_DOWN", address, remedy});
  const auto names_both = AllOf(HasSubstr(address), HasSubstr(remedy));
  const auto ready = server_->Admin("/readyz?tag=order");
  EXPECT_EQ(ready.status, 503);
  EXPECT_THAT(ready.body, names_both);
  EXPECT_THAT(server_->Admin("/v1/status").body, names_both);
  EXPECT_TRUE(Eventually(kPatience, [&] { return testing::Value(server_->log(), names_both); }))
      << server_->log();
  EXPECT_EQ(server_->Metric("firn_segment_store_away{tag=\"order\"}"), 1);

  Finished doctor;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    doctor = RunFirn({"doctor", "--registry=" + registry()});
    return doctor.out.find("order") != std::string::npos;
  })) << doctor.out;
  EXPECT_THAT(doctor.out, AllOf(names_both, HasSubstr("fix: do as the reason says")));
}

INSTANTIATE_TEST_SUITE_P(Databases, StoreTlsTest,
                         testing::Combine(testing::Values("mysql", "postgres", "mongo", "redis"),
                                          testing::ValuesIn(TestedFaults())),
                         [](const auto& tested) {
                           return Cat(std::get<0>(tested.param), "_",
                                      NameOf(std::get<1>(tested.param)));
                         });

}  // namespace
}  // namespace firn
