// Flags of firn-server whose effect shows only from outside.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "common/id/layout.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/server/program/running_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn {
namespace {

class ConfiguredServerTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, const std::string& text) {
    std::ofstream(dir_ / name, std::ios::trunc) << text;
    std::filesystem::permissions(dir_ / name, static_cast<std::filesystem::perms>(0600));
    return dir_ / name;
  }

  // Writes a new key and a self-signed certificate to the server's files.
  void MakeCertificate(const std::string& name) {
    const Finished made =
        RunToEnd({"openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt",
                  "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=" + name,
                  "-keyout", dir_ / "server.key", "-out", dir_ / "server.crt"});
    ASSERT_EQ(made.exit_code, 0) << made.err;
  }
  std::string Certificate() const {
    std::ifstream file(dir_ / "server.crt");
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }

  // Returns the certificate that it presents, after taking an id over that connection.
  static std::string ServedCertificate(const RunningServer& server) {
    const Finished shown = RunToEnd({"/usr/bin/python3", "-c", R"(
import socket, ssl, sys
context = ssl._create_unverified_context()
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 20) as plain:
    with context.wrap_socket(plain) as wire:
        wire.sendall(b"GET /genid HTTP/1.0\r\n\r\n")
        if not wire.recv(1000).startswith(b"HTTP/1.1 200"):
            sys.exit(1)
        print(ssl.DER_cert_to_PEM_cert(wire.getpeercert(True)), end="")
)",
                                     std::to_string(server.port())});
    return shown.exit_code == 0 ? shown.out : std::string();
  }

  TempDir dir_;
};

TEST_F(ConfiguredServerTest, ServesANewCertificateAfterSighup) {
  ASSERT_NO_FATAL_FAILURE(MakeCertificate("first"));
  const std::string first = Certificate();
  RunningServer server(dir_ / "state", {"--tls_cert=" + (dir_ / "server.crt"),
                                        "--tls_key=" + (dir_ / "server.key")});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(ServedCertificate(server), first);

  ASSERT_NO_FATAL_FAILURE(MakeCertificate("second"));
  const std::string second = Certificate();
  ASSERT_NE(second, first);
  EXPECT_EQ(ServedCertificate(server), first) << "there was no SIGHUP yet";
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(Eventually(kPatience, [&] { return ServedCertificate(server) == second; }))
      << server.log();

  Write("server.crt", "not a certificate");
  server.process().Signal(SIGHUP);
  EXPECT_TRUE(Eventually(kPatience, [&] {
    return server.log().find("reload failed, the files read before stay in force") !=
           std::string::npos;
  })) << server.log();
  EXPECT_EQ(ServedCertificate(server), second);
}

TEST_F(ConfiguredServerTest, ReportsWhatEachReloadChanged) {
  ASSERT_NO_FATAL_FAILURE(MakeCertificate("first"));
  Write("users", "alice:secret\n");
  Write("rights", "redis:alice *\n");
  for (const char* file : {"users", "rights"}) ASSERT_EQ(chmod((dir_ / file).c_str(), 0600), 0);
  RunningServer server(
      dir_ / "state",
      {"--tls_cert=" + (dir_ / "server.crt"), "--tls_key=" + (dir_ / "server.key"),
       "--redis_auth_file=" + (dir_ / "users"), "--rights_file=" + (dir_ / "rights")});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  EXPECT_EQ(server.Admin("/v1/status").body.find("last_reload"), std::string::npos);
  const auto reload = [&](const std::string& says) {
    server.process().Signal(SIGHUP);
    EXPECT_TRUE(Eventually(kPatience, [&] { return server.log().find(says) != std::string::npos; }))
        << says << "\n"
        << server.log();
  };
  reload(
      "--tls_cert unchanged, --tls_key unchanged, --redis_auth_file unchanged, "
      "--rights_file unchanged");
  Write("users", "alice:other\n");
  reload("--redis_auth_file changed, --rights_file unchanged");
  // A refused file does not keep others from being accepted.
  Write("server.crt", "not a certificate");
  Write("users", "alice:third\n");
  reload(
      "--tls_cert refused, --tls_key refused, --redis_auth_file changed, "
      "--rights_file unchanged");
  Write("rights", "redis:alice\n");
  reload("--redis_auth_file unchanged, --rights_file refused");
  const std::string refused =
      R"("flag":"rights_file","path":")" + (dir_ / "rights") + R"(","result":"refused")";
  std::string status;
  EXPECT_TRUE(Eventually(kPatience, [&] {
    status = server.Admin("/v1/status").body;
    std::string compact = status;
    std::erase_if(compact, [](char c) { return c == ' ' || c == '\n'; });
    return compact.find(refused) != std::string::npos;
  })) << status;
  EXPECT_NE(status.find("neither a tag nor * follows the name"), std::string::npos) << status;
}

TEST_F(ConfiguredServerTest, ServesAnyTagWithADefaultStrategy) {
  RunningServer strict(dir_ / "strict", {});
  RunningServer open(dir_ / "open", {"--default_strategy=snowflake"});
  ASSERT_TRUE(strict.BecomesReady() && open.BecomesReady()) << strict.log() << open.log();
  EXPECT_EQ(strict.Get("/v1/ids/undefined-tag").status, 404);
  EXPECT_EQ(open.Get("/v1/ids/undefined-tag").status, 200);
}

TEST_F(ConfiguredServerTest, TheDefaultTagNeedsADefinition) {
  RunningServer named(dir_ / "named", {"--default_tag=order", "--default_strategy=snowflake"});
  RunningServer undefined(dir_ / "undefined", {"--default_tag=order"});
  ASSERT_TRUE(named.BecomesReady()) << named.log();
  EXPECT_EQ(named.Get("/genid").status, 200);
  ASSERT_TRUE(Eventually(kPatience, [&] { return undefined.Get("/v1/ids/default").status == 200; }))
      << undefined.log();
  EXPECT_EQ(undefined.Get("/genid").status, 404) << "the tag is not defined";
  EXPECT_EQ(undefined.Admin("/readyz").status, 503) << "calls without a tag are refused";
}

TEST_F(ConfiguredServerTest, WaitsForCallsInFlightOnlyUntilDrainPatience) {
  // At two ids a second, a thousand calls would be in flight until each times out.
  RunningServer server(dir_ / "state",
                       {"--layout=time:31s machine:10 sequence:1", "--issue_wait_ms=60000",
                        "--drain_notice_ms=0", "--drain_patience_ms=500"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  front::ThriftCalls calls;
  std::string thousand;
  for (int i = 0; i < 1000; ++i) thousand += calls.GetId("default");
  front::RawPeer peer(static_cast<uint16_t>(server.port()));
  ASSERT_TRUE(peer.Send(thousand));
  ASSERT_EQ(peer.Receive(33).size(), 33u);
  server.process().Signal(SIGTERM);
  EXPECT_EQ(server.process().Wait(kPatience / 2), 0) << server.log();
  EXPECT_NE(server.log().find("released: "), std::string::npos) << server.log();
}

TEST_F(ConfiguredServerTest, BeginsEachTickAccordingToItsFlag) {
  RunningServer server(dir_ / "state", {"--sequence_start=zero"});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  // Two calls may be in one tick, but not all ten.
  uint64_t least = UINT64_MAX;
  for (int i = 0; i < 10; ++i) {
    const auto answer = server.Get("/genid");
    ASSERT_EQ(answer.status, 200) << answer.body;
    least = std::min(least, Layout::Firn().Unpack(std::stoll(answer.body))->sequence);
  }
  EXPECT_EQ(least, 0u);
}

TEST_F(ConfiguredServerTest, StartsWithTheFlagFileOfThePreviousVersion) {
  const std::vector<std::string> retired{
      "frame_bytes_max",       "string_bytes_max",    "container_items_max",
      "http_header_bytes_max", "http_body_bytes_max", "requests_per_turn_max",
      "turn_us_max",           "runs_ids_max",        "output_waiting_bytes_max",
      "clock_alarm_ms"};
  std::string text = "--turn_us_max=2000\n";  // also named twice
  for (const std::string& flag : retired) text += "--" + flag + "=100000\n";
  const std::string file = "--flagfile=" + Write("old.flags", text);
  RunningServer server(dir_ / "state", {file});
  ASSERT_TRUE(server.BecomesReady()) << server.log();
  const Finished checked = RunToEnd({BuiltProgram("firn-server"), "--check_config", file});
  EXPECT_EQ(checked.exit_code, 0) << checked.err;
  for (const std::string& flag : retired) {
    const std::string warning = "--" + flag + " is retired and has no effect; remove it";
    for (const std::string& log : {server.log(), checked.err}) {
      const size_t first = log.find(warning);
      EXPECT_NE(first, std::string::npos) << log;
      EXPECT_EQ(log.rfind(warning), first) << log;
    }
  }
  // The rights of clients are not ignored.
  const Finished names =
      RunToEnd({BuiltProgram("firn-server"), "--check_config", "--tls_names_file=" + (dir_ / "n")});
  EXPECT_EQ(names.exit_code, 2);
  EXPECT_NE(names.err.find("--tls_names_file is retired and read as --rights_file; rename it"),
            std::string::npos)
      << names.err;
  EXPECT_NE(names.err.find("--rights_file needs --tls_client_ca"), std::string::npos) << names.err;
}

TEST_F(ConfiguredServerTest, NamesEveryInvalidFileAtOnce) {
  const Finished finished = RunToEnd(
      {BuiltProgram("firn-server"), "--state_dir=" + (dir_ / "state"), "--tls_cert=" + (dir_ / "c"),
       "--tls_key=" + (dir_ / "k"), "--history_file=" + (dir_ / "no/history"),
       "--tinyid_token_file=" + (dir_ / "t"), "--default_strategy=typo"});
  EXPECT_EQ(finished.exit_code, 2);
  for (const char* flag :
       {"--tls_cert", "--history_file", "--tinyid_token_file", "--default_strategy"}) {
    EXPECT_NE(finished.err.find(flag), std::string::npos) << flag << ": " << finished.err;
  }
  EXPECT_FALSE(std::filesystem::exists(dir_ / "state"));
}

}  // namespace
}  // namespace firn
