// `firn doctor` and `firn audit` send requests to servers' admin ports.

#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "common/base/cat.h"
#include "common/json/json.h"
#include "tests/server/program/running_server.h"
#include "tests/support/json_of.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class AskedServersTest : public testing::Test {
 protected:
  Finished Firn(const std::vector<std::string>& words) const {
    return RunFirn(words, {"--registry=" + registry()});
  }
  RunningServer& Start(std::vector<std::string> flags = {}) {
    flags.push_back("--registry=" + registry());
    servers_.push_back(std::make_unique<RunningServer>(folder_ / Cat("server", servers_.size()),
                                                       std::move(flags)));
    return *servers_.back();
  }
  // Waits until the doctor prints `words`. Returns its whole result.
  Finished Doctor(const std::string& words, std::vector<std::string> flags = {}) const {
    flags.insert(flags.begin(), "doctor");
    Finished doctor;
    EXPECT_TRUE(Eventually(kPatience,
                           [&] {
                             doctor = Firn(flags);
                             return doctor.out.find(words) != std::string::npos;
                           }))
        << words << "\n"
        << doctor.out << doctor.err;
    return doctor;
  }
  std::string registry() const { return "dir://" + (folder_ / "registry"); }

  TempDir folder_;
  std::vector<std::unique_ptr<RunningServer>> servers_;
};

TEST_F(AskedServersTest, ListsEveryRefusedTagOnlyIfTheServerAnswers) {
  RunningServer& server = Start();
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  RunningServer& other = Start();
  ASSERT_TRUE(other.BecomesReady()) << other.log();
  const Finished both = Doctor("asked directly: 2 of 2 servers answered\nnothing is wrong");
  EXPECT_EQ(both.exit_code, 0) << both.out;
  other.Kill();

  // A server's report has room for 20 tags.
  constexpr int kTags = 23;
  std::string file;
  for (int i = 0; i < kTags; ++i) file += Cat("[tag", i, "]\nstrategy = segment\nstore = none\n");
  std::ofstream(folder_ / "tags.ini") << file;
  const Finished applied = Firn({"tags", "apply", folder_ / "tags.ini", "--force"});
  ASSERT_EQ(applied.exit_code, 0) << applied.out << applied.err;
  const auto refuses = [&](int tag) {
    return HasSubstr(Cat(server.address(), " refuses tag 'tag", tag, "': unsupported"));
  };
  // The server reads one definition after another.
  for (int i = 0; i < kTags; ++i) Doctor(Cat("refuses tag 'tag", i, "'"));
  Finished doctor = Firn({"doctor"});
  EXPECT_EQ(doctor.exit_code, 4);
  for (int i = 0; i < kTags; ++i) EXPECT_THAT(doctor.out, refuses(i));
  EXPECT_THAT(doctor.out, Not(HasSubstr("more tags")));
  EXPECT_THAT(Firn({"audit"}).out, refuses(9));

  // A server that hangs still has its node in the registry, with its last report.
  ASSERT_TRUE(Eventually(kPatience, [&] {
    return server.Admin("/v1/audit").body.find("refuses 3 more tags") != std::string::npos;
  }));
  // A server that is paused during a write to the registry's directory holds its lock: try again.
  ASSERT_TRUE(Eventually(kPatience, [&] {
    server.process().Pause();
    doctor = Firn({"doctor"});
    if (doctor.out.find("timed out") != std::string::npos) return true;
    server.process().Resume();
    return false;
  })) << doctor.out;
  EXPECT_EQ(doctor.exit_code, 4);
  EXPECT_THAT(doctor.out, AllOf(HasSubstr(" refuses 3 more tags"), HasSubstr("0 of 1 servers"),
                                HasSubstr(server.address() + ": http://127.0.0.1:"),
                                HasSubstr("Not known of it: ")));
  EXPECT_THAT(Firn({"audit"}).out, HasSubstr("Not known of it: "));
  const Json asked = JsonOf(Firn({"doctor", "--json"}).out).at("asked");
  EXPECT_EQ(asked.at(0).at("address"), server.address());
  EXPECT_FALSE(asked.at(0).at("answered").boolean());
  EXPECT_THAT(asked.at(0).at("why").text(), HasSubstr("timed out"));
  server.process().Resume();
  EXPECT_THAT(Doctor("1 of 1 servers answered").out, Not(HasSubstr("more tags")));
}

TEST_F(AskedServersTest, NamesAFileThatTheLastReloadRefused) {
  const std::string rights = folder_ / "rights";
  std::ofstream(rights) << "redis:alice *\n";
  ASSERT_EQ(chmod(rights.c_str(), 0600), 0);
  const std::string users = folder_ / "users";
  std::ofstream(users) << "alice:secret\n";
  ASSERT_EQ(chmod(users.c_str(), 0600), 0);
  RunningServer& server = Start({"--rights_file=" + rights, "--redis_auth_file=" + users});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  std::ofstream(rights) << "redis:alice\n";
  server.process().Signal(SIGHUP);
  const Finished doctor = Doctor("its last reload, at ");
  EXPECT_EQ(doctor.exit_code, 1) << doctor.out;
  EXPECT_THAT(doctor.out, AllOf(HasSubstr(server.address() + ": its last reload"),
                                HasSubstr(rights), HasSubstr("fix: correct the file")));
  EXPECT_THAT(Firn({"audit"}).out, HasSubstr("WRONG: " + server.address() + ": its last reload"));
  std::ofstream(rights) << "redis:alice *\n";
  server.process().Signal(SIGHUP);
  Doctor("nothing is wrong");
}

TEST_F(AskedServersTest, ChecksTheCertificateOfAnAdminPort) {
  TlsAuthority authority("authority of servers");
  const TlsAuthority other("another authority");
  authority.Sign("server", "IP:127.0.0.1");
  authority.Sign("operator");
  RunningServer& server = Start({"--admin_tls_cert=" + authority.File("server.crt"),
                                 "--admin_tls_key=" + authority.File("server.key"),
                                 "--admin_tls_client_ca=" + authority.File("ca.crt")});
  ASSERT_TRUE(Eventually(kPatience, [&] { return server.Get("/v1/ids/default").status == 200; }))
      << server.log();
  const std::string cert = "--tls_cert=" + authority.File("operator.crt");
  const std::string key = "--tls_key=" + authority.File("operator.key");
  const std::string ca = "--tls_ca=" + authority.File("ca.crt");
  EXPECT_THAT(Doctor("0 of 1 servers").out, HasSubstr("its admin port uses TLS; name its "
                                                      "authorities with --tls_ca"));
  const std::string wrong = "--tls_ca=" + other.File("ca.crt");
  EXPECT_THAT(Doctor("0 of 1 servers", {wrong, cert, key}).out, HasSubstr("TLS failed: "));
  Doctor("0 of 1 servers", {ca});  // it requires a certificate
  Doctor("1 of 1 servers answered", {ca, cert, key});
}

}  // namespace
}  // namespace firn
