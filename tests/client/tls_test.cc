// Tests clients of real servers with TLS, and the certificates of both sides.

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client/client.h"
#include "server/front/server_front.h"
#include "tests/bench/bench_server.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

using front::TlsFiles;

constexpr const char* kNames = "DNS:localhost,IP:127.0.0.1";

class ClientTlsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ours_ = new TlsAuthority("ours");
    theirs_ = new TlsAuthority("theirs");
    ours_->Sign("server", kNames);
    ours_->Sign("other", "DNS:other.example,IP:10.0.0.7");
    ours_->Sign("nameless");
    for (TlsAuthority* authority : {ours_, theirs_}) authority->Sign("client");
  }
  static void TearDownTestSuite() {
    delete ours_;
    delete theirs_;
  }

  static TlsFiles Shown(const std::string& who) {
    return {ours_->File(who + ".crt"), ours_->File(who + ".key"), {}};
  }
  static TlsFiles Strict() {
    TlsFiles files = Shown("server");
    files.client_ca = ours_->File("ca.crt");
    return files;
  }

  void Serve(std::optional<TlsFiles> files) {
    if (front_) front_->Shutdown(Milliseconds(0));
    front_.reset();
    front::ServerFrontOptions options;
    options.listen.port = static_cast<uint16_t>(port_);
    options.listen.tls = std::move(files);
    front_.emplace(options, issuing_.issuer(), issuing_, issuing_, SystemClock());
    const Status started = front_->Start();
    ASSERT_TRUE(started.ok()) << started;
  }

  static TlsOptions Believing(const TlsAuthority& authority) {
    return {.ca = authority.File("ca.crt")};
  }
  static TlsOptions As(const TlsAuthority& authority) {
    TlsOptions options = Believing(*ours_);
    options.cert = authority.File("client.crt");
    options.key = authority.File("client.key");
    return options;
  }
  std::unique_ptr<Client> Make(std::optional<TlsOptions> tls,
                               const std::string& host = "127.0.0.1") const {
    return std::make_unique<Client>(
        ClientOptions{.servers = "list://" + host + ":" + std::to_string(port_),
                      .tls = std::move(tls),
                      .deadline = Milliseconds(30'000),
                      .attempt_limit = Milliseconds(30'000)});
  }
  // Returns the error message of a client's first call, which must fail before its deadline.
  std::string FailureOf(std::optional<TlsOptions> tls, const std::string& host = "127.0.0.1") {
    CallReport report;
    const auto client = Make(std::move(tls), host);
    const Result<int64_t> id = client->GetId("default", {.report = &report});
    if (id.ok()) return "it went well";
    EXPECT_FALSE(report.attempts.empty()) << id.status();
    return id.status().message();
  }

  static TlsAuthority* ours_;
  static TlsAuthority* theirs_;
  const int port_ = FreePort();
  front::BenchServer issuing_;
  std::optional<front::ServerFront> front_;
};

TlsAuthority* ClientTlsTest::ours_ = nullptr;
TlsAuthority* ClientTlsTest::theirs_ = nullptr;

bool Says(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_F(ClientTlsTest, MakesEveryKindOfCallByNameAndByAddress) {
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("server")));
  for (const char* host : {"127.0.0.1", "localhost"}) {
    const auto client = Make(Believing(*ours_), host);
    const Result<int64_t> id = client->GetId("default");
    EXPECT_TRUE(id.ok()) << id.status();
    EXPECT_TRUE(client->GetIdLater("default").get().ok());
    const auto many = client->GetIds("default", 50'000);  // many records
    ASSERT_TRUE(many.ok()) << many.status();
    EXPECT_EQ(many->size(), 50'000u);
    EXPECT_GT(many->front(), *id);
  }
}

TEST_F(ClientTlsTest, ManyCallsShareOneConnection) {
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("server")));
  const auto client = Make(Believing(*ours_));
  std::atomic<int> good = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      for (int n = 0; n < 200; ++n) good += client->GetId("default").ok() ? 1 : 0;
    });
  }
  threads.clear();
  EXPECT_EQ(good, 1600);
}

TEST_F(ClientTlsTest, RefusesACertificateForAnotherHost) {
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("other")));
  const std::string said = FailureOf(Believing(*ours_));
  EXPECT_TRUE(Says(said, "its certificate is for other.example, 10.0.0.7, not for 127.0.0.1"))
      << said;
  EXPECT_TRUE(Says(FailureOf(Believing(*ours_), "localhost"), "not for localhost"));
  TlsOptions named = Believing(*ours_);
  named.name = "other.example";
  EXPECT_EQ(FailureOf(named), "it went well");
  named.name = "10.0.0.7";
  EXPECT_EQ(FailureOf(named), "it went well");
  named.name = "10.0.0.8";
  EXPECT_TRUE(Says(FailureOf(named), "not for 10.0.0.8"));
}

TEST_F(ClientTlsTest, IgnoresTheCommonName) {
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("nameless")));
  TlsOptions named = Believing(*ours_);
  named.name = "nameless";
  const std::string said = FailureOf(named);
  EXPECT_TRUE(Says(said, "its certificate is for no host, not for nameless")) << said;
}

TEST_F(ClientTlsTest, RefusesACertificateOfAnUntrustedAuthority) {
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("server")));
  const std::string said = FailureOf(Believing(*theirs_));
  EXPECT_TRUE(
      Says(said, "its certificate is not signed by an authority in " + theirs_->File("ca.crt")))
      << said;
  EXPECT_TRUE(Says(FailureOf(TlsOptions()), "not signed by an authority in this machine"));
}

TEST_F(ClientTlsTest, RefusesAnExpiredCertificate) {
  TlsAuthority late("late");
  if (!late.SignForSeconds("server", -600, kNames)) GTEST_SKIP() << "requires libfaketime";
  ASSERT_NO_FATAL_FAILURE(Serve(TlsFiles{late.File("server.crt"), late.File("server.key"), {}}));
  const std::string said = FailureOf(Believing(late));
  EXPECT_TRUE(Says(said, "its certificate: certificate has expired")) << said;
}

TEST_F(ClientTlsTest, ReportsThatOnlyOneSideUsesTls) {
  ASSERT_NO_FATAL_FAILURE(Serve(std::nullopt));
  std::string said = FailureOf(Believing(*ours_));
  EXPECT_TRUE(Says(said, "in the TLS handshake; it may not speak TLS") ||
              Says(said, "it does not speak TLS"))
      << said;
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("server")));
  said = FailureOf(std::nullopt);
  EXPECT_TRUE(Says(said, "it speaks TLS, but the server list does not say so") ||
              Says(said, "before it answered anything: it may require TLS"))
      << said;
}

TEST_F(ClientTlsTest, PresentsItsCertificateToServersThatRequireOne) {
  ASSERT_NO_FATAL_FAILURE(Serve(Strict()));
  EXPECT_EQ(FailureOf(As(*ours_)), "it went well");
  std::string said = FailureOf(Believing(*ours_));
  EXPECT_TRUE(Says(said, "it requires a client certificate")) << said;
  said = FailureOf(As(*theirs_));
  EXPECT_TRUE(Says(said, "it refuses the certificate " + theirs_->File("client.crt"))) << said;
}

TEST_F(ClientTlsTest, NamesAnUnusableFile) {
  TlsOptions options = As(*ours_);
  options.key = theirs_->File("client.key");
  EXPECT_TRUE(Says(Make(options)->status().message(), options.key)) << Make(options)->status();
  options = Believing(*ours_);
  options.ca = "/nowhere/ca.crt";
  EXPECT_TRUE(Says(Make(options)->status().message(), "/nowhere/ca.crt"));
  options = As(*ours_);
  options.key.clear();
  EXPECT_TRUE(Says(Make(options)->status().message(), "tls.cert and tls.key go together"));
  TempDir dir;
  options.key = dir / "key";
  std::filesystem::copy_file(ours_->File("client.key"), options.key);
  std::filesystem::permissions(options.key, std::filesystem::perms(0644));
  EXPECT_EQ(Make(options)->status().code(), Code::kDenied);
}

// The server accepts the connection and never sends anything.
TEST_F(ClientTlsTest, AServerThatHangsInTheHandshakeCostsOneAttempt) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(listen(listener, 8), 0);
  ASSERT_EQ(getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size), 0);
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("server")));
  const std::string hung = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  const std::string good = "127.0.0.1:" + std::to_string(port_);
  for (int i = 0; i < 4; ++i) {  // each server is tried first at some time
    Client client({.servers = "list://" + hung + "," + good,
                   .tls = Believing(*ours_),
                   .deadline = Milliseconds(60'000),
                   .attempt_limit = Milliseconds(300)});
    CallReport report;
    const Result<int64_t> id = client.GetId("default", {.report = &report});
    // On a slow machine the good server's answer may be late, too.
    EXPECT_TRUE(id.ok() || !report.attempts.empty()) << id.status();
  }
  Client client({.servers = "list://" + hung,
                 .tls = Believing(*ours_),
                 .deadline = Milliseconds(20'000),
                 .attempt_limit = Milliseconds(300)});
  const Status said = client.GetId("default").status();
  EXPECT_TRUE(Says(said.message(), "in the TLS handshake")) << said;
  close(listener);
}

TEST_F(ClientTlsTest, AcceptsAServersFixedCertificate) {
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("other")));
  const auto client = Make(Believing(*ours_));
  EXPECT_FALSE(client->GetId("default").ok());
  // The client no longer tries the server, but still reports the reason.
  EXPECT_TRUE(Eventually(kPatience, [&] {
    const Status again = client->GetId("default", {.deadline = Milliseconds(200)}).status();
    return Says(again.message(), "not for 127.0.0.1");
  }));
  ASSERT_NO_FATAL_FAILURE(Serve(Shown("server")));
  EXPECT_TRUE(Eventually(kPatience, [&] { return client->GetId("default").ok(); }));
}

TEST_F(ClientTlsTest, UsesItsOwnFixedFiles) {
  ASSERT_NO_FATAL_FAILURE(Serve(Strict()));
  TempDir dir;
  const auto put = [&](const TlsAuthority& authority) {
    for (const char* file : {"client.crt", "client.key"}) {
      ASSERT_EQ(RunToEnd({"cp", authority.File(file), dir / file}).exit_code, 0);
    }
  };
  put(*theirs_);
  TlsOptions options = Believing(*ours_);
  options.cert = dir / "client.crt";
  options.key = dir / "client.key";
  const auto client = Make(options);
  EXPECT_FALSE(client->GetId("default").ok());
  put(*ours_);
  EXPECT_TRUE(Eventually(kPatience, [&] { return client->GetId("default").ok(); }));
}

TEST_F(ClientTlsTest, ResumesItsSessionWithTheSameServer) {
  ASSERT_NO_FATAL_FAILURE(Serve(Strict()));
  const auto client = Make(As(*ours_));
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(client->GetId("default").ok());
    ASSERT_TRUE(client->GetIdLater("default").get().ok());
    // The restarted server has new ticket keys. Old sessions must not cause failures.
    ASSERT_NO_FATAL_FAILURE(Serve(Strict()));
  }
  EXPECT_TRUE(Eventually(kPatience, [&] { return client->GetId("default").ok(); }));
}

// The server's files change during calls. Open connections stay open, and new connections use the
// new files.
TEST_F(ClientTlsTest, NoCallFailsWhenCertificatesAreRenewed) {
  TempDir dir;
  TlsAuthority next("next");
  next.Sign("server", kNames);
  next.Sign("client");
  const TlsFiles files{dir / "crt", dir / "key", dir / "ca"};
  const auto put = [&](const TlsAuthority& authority) {
    const auto copy = [&](const std::string& from, const std::string& to) {
      ASSERT_EQ(RunToEnd({"cp", authority.File(from), to + ".new"}).exit_code, 0);
      std::filesystem::rename(to + ".new", to);
    };
    copy("server.crt", files.cert);
    copy("server.key", files.key);
  };
  // Both sides trust both authorities while the certificates are replaced.
  ASSERT_EQ(RunToEnd({"sh", "-c",
                      "cat " + ours_->File("ca.crt") + " " + next.File("ca.crt") + " > " +
                          files.client_ca})
                .exit_code,
            0);
  put(*ours_);
  ASSERT_NO_FATAL_FAILURE(Serve(files));
  TlsOptions options = As(*ours_);
  options.ca = files.client_ca;
  const auto old_client = Make(options);
  ASSERT_TRUE(old_client->GetId("default").ok());
  std::atomic<uint64_t> calls = 0, failed = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&, i](const std::stop_token& stop) {
      std::unique_ptr<Client> brief;
      while (!stop.stop_requested()) {
        if (i == 0) brief = Make(options);  // a new connection for each call
        ++calls;
        failed += (i == 0 ? *brief : *old_client).GetId("default").ok() ? 0 : 1;
      }
    });
  }
  const auto go_on = [&] {
    const uint64_t before = calls;
    return Eventually(kPatience, [&] { return calls > before + 50; });
  };
  for (const TlsAuthority* authority : {&next, ours_, &next}) {
    EXPECT_TRUE(go_on());
    put(*authority);
    ASSERT_TRUE(front_->Reload().faults.empty());
    EXPECT_TRUE(go_on());
    const bool ours_now = authority == ours_;
    EXPECT_EQ(FailureOf(Believing(*ours_)) == "it went well", false) << "it shows no certificate";
    TlsOptions only_next = As(*ours_);
    only_next.ca = next.File("ca.crt");
    EXPECT_EQ(FailureOf(only_next) == "it went well", !ours_now) << "new ones see the new one";
  }
  threads.clear();
  EXPECT_EQ(failed, 0u) << "of " << calls;
}

}  // namespace
}  // namespace firn
