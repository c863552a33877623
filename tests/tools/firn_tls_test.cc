// Tests the command against a real server with TLS that requires client certificates.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

using Words = std::vector<std::string>;

class FirnTlsTest : public testing::Test {
 protected:
  FirnTlsTest() {
    ours_.Sign("client");
    operators_.Sign("client");
    SignAnew();
    Write("names", "client *\n");
    server_.emplace(
        Words{BuiltProgram("firn-server"), "--registry=" + registry_, "--listen=" + address_,
              "--admin_listen=" + admin_address_, "--rights_file=" + (folder_ / "names"),
              "--admin_tls_cert=" + (folder_ / "crt"), "--admin_tls_key=" + (folder_ / "key"),
              "--admin_tls_client_ca=" + operators_.File("ca.crt"),
              "--state_dir=" + (folder_ / "state"), "--tls_cert=" + (folder_ / "crt"),
              "--tls_key=" + (folder_ / "key"), "--tls_client_ca=" + ours_.File("ca.crt")},
        Process::Options{.output_file = folder_ / "log"});
    const Words next = As(ours_, {"next", "--servers=firn://" + address_});
    EXPECT_TRUE(Eventually(kPatience, [&] { return Firn(next).exit_code == 0; }));
  }
  ~FirnTlsTest() override {
    if (HasFailure()) folder_.Keep();
  }

  // Replaces the server's certificate.
  void SignAnew() {
    ours_.Sign("server", "IP:127.0.0.1");
    for (const char* kind : {"crt", "key"}) {
      std::filesystem::rename(ours_.File(std::string("server.") + kind), folder_ / kind);
    }
  }

  void Write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / (name + ".new")) << text;
    std::filesystem::rename(folder_ / (name + ".new"), folder_ / name);
  }
  // Fetches a page of the server with a client certificate of `authority`.
  Finished Page(const std::string& url, const TlsAuthority& authority) const {
    return RunToEnd({"curl", "--silent", "--show-error", "--cacert", ours_.File("ca.crt"), "--cert",
                     authority.File("client.crt"), "--key", authority.File("client.key"),
                     "https://" + url});
  }

  bool ShowsWhatStandsInItsFile() const {
    std::stringstream certificate;
    certificate << std::ifstream(folder_ / "crt").rdbuf();
    const Finished shown =
        RunToEnd({"curl", "--silent", "--output", "/dev/null", "--write-out", "%{certs}",
                  "--cacert", ours_.File("ca.crt"), "--cert", ours_.File("client.crt"), "--key",
                  ours_.File("client.key"), "https://" + address_ + "/"});
    return shown.out.find(certificate.str()) != std::string::npos;
  }

  static Words As(const TlsAuthority& authority, Words words) {
    words.push_back("--tls_cert=" + authority.File("client.crt"));
    words.push_back("--tls_key=" + authority.File("client.key"));
    words.push_back("--tls_ca=" + authority.File("ca.crt"));
    return words;
  }
  // The last one of two equal flags counts.
  static Finished Firn(Words words) {
    words.insert(words.begin(), {"--deadline_ms=30000", "--attempt_ms=10000"});
    return RunFirn(words);
  }

  TempDir folder_;
  TlsAuthority ours_{"ours"}, operators_{"operators"};
  const std::string registry_ = "dir://" + (folder_ / "registry");
  const std::string address_ = "127.0.0.1:" + std::to_string(FreePort());
  const std::string admin_address_ = "127.0.0.1:" + std::to_string(FreePort());
  std::optional<Process> server_;
};

TEST_F(FirnTlsTest, UsesTlsIfFlagsOrTheListRequireIt) {
  const Finished listed = Firn(As(ours_, {"next", "--registry=" + registry_}));
  EXPECT_EQ(listed.exit_code, 0) << listed.err;
  const Finished seen = Firn(As(ours_, {"servers", "--registry=" + registry_}));
  EXPECT_EQ(seen.exit_code, 0) << seen.out << seen.err;

  // The list marks the server as TLS, but this host does not trust its authority.
  const Finished unknown = Firn({"next", "--registry=" + registry_, "--deadline_ms=5000"});
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_NE(unknown.err.find("its certificate is not signed by an authority in this machine"),
            std::string::npos)
      << unknown.err;

  const Finished bare =
      Firn({"next", "--servers=list://" + address_, "--tls_ca=" + ours_.File("ca.crt")});
  EXPECT_EQ(bare.exit_code, 3);
  EXPECT_NE(bare.err.find("it requires a client certificate"), std::string::npos) << bare.err;

  const Finished half = Firn({"next", "--servers=list://" + address_, "--tls_cert=x"});
  EXPECT_EQ(half.exit_code, 2);
  EXPECT_NE(half.err.find("tls.cert and tls.key go together"), std::string::npos) << half.err;
}

TEST_F(FirnTlsTest, NoCallFailsWhenTheServersCertificateChanges) {
  Words load{BuiltProgram("firn"),
             "bench",
             "--seconds=4",
             "--threads=3",
             "--warmup_ms=0",
             "--servers=firn://" + address_,
             "--json",
             "--deadline_ms=30000"};
  load = As(ours_, std::move(load));
  Process bench(load, {.output_file = folder_ / "bench"});
  for (int i = 0; i < 3; ++i) {
    SignAnew();
    server_->Signal(SIGHUP);
    // New connections use the new certificate. The load's connections stay open.
    EXPECT_TRUE(Eventually(kPatience, [&] { return ShowsWhatStandsInItsFile(); }));
    const Finished next = Firn(As(ours_, {"next", "--servers=firn://" + address_}));
    EXPECT_EQ(next.exit_code, 0) << next.err;
  }
  EXPECT_EQ(bench.Wait(kPatience), 0) << "see " << folder_ / "bench";
}

TEST_F(FirnTlsTest, ACertificatesNamePermitsOnlyItsTags) {
  const std::string metrics = admin_address_ + "/metrics";
  const Words next = As(ours_, {"next", "--servers=list://" + address_});
  const std::string page = address_ + "/v1/ids/default";
  Write("names", "client refund\n");  // the server reloads the file without a signal
  ASSERT_TRUE(Eventually(kPatience, [&] { return Firn(next).exit_code != 0; }));
  const Finished refused = Firn(next);
  EXPECT_EQ(refused.exit_code, 4);
  EXPECT_NE(refused.err.find("the certificate of 'client' gives no right to ids of 'default'"),
            std::string::npos)
      << refused.err;
  EXPECT_NE(Page(page, ours_).out.find("REJECTED"), std::string::npos) << Page(page, ours_).out;
  EXPECT_NE(Page(metrics, operators_).out.find("firn_tls_names_refused_total{name=\"client\"}"),
            std::string::npos);
  Write("names", "client refund,default\n");
  EXPECT_TRUE(Eventually(kPatience, [&] { return Firn(next).exit_code == 0; }));
  EXPECT_NE(Page(page, ours_).out.find("\"ids\""), std::string::npos) << Page(page, ours_).out;
}

TEST_F(FirnTlsTest, TheAdminPortRequiresItsOwnCertificates) {
  const std::string page = admin_address_ + "/v1/status";
  EXPECT_EQ(Page(page, operators_).exit_code, 0) << Page(page, operators_).err;
  EXPECT_NE(Page(page, operators_).out.find("{"), std::string::npos);
  EXPECT_NE(Page(page, ours_).exit_code, 0)
      << "a client's certificate does not open the admin port";
  EXPECT_NE(RunToEnd({"curl", "--silent", "http://" + page}).exit_code, 0);
  const Words next = As(operators_, {"next", "--servers=list://" + address_});
  EXPECT_EQ(Firn(next).exit_code, 3) << "an operator's certificate does not permit ids";
}

}  // namespace
}  // namespace firn
