#include "server/front/net/tls.h"

#include <fstream>
#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn::front {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;
using std::string_literals::operator""s;

class TlsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ours_ = new TlsAuthority("ours");
    theirs_ = new TlsAuthority("theirs");
    for (const char* who : {"server", "client"}) ours_->Sign(who);
    theirs_->Sign("client");
  }
  static void TearDownTestSuite() {
    delete ours_;
    delete theirs_;
  }

  TlsFiles ServerFiles() const {
    return {ours_->File("server.crt"), ours_->File("server.key"), {}};
  }

  void Open(TlsFiles files) {
    FrontDoorOptions options;
    options.limits = issuing_.limits;
    options.tls = std::move(files);
    door_.emplace(options, SystemClock(), [this] {
      ProtocolSet set;
      set.thrift_binary =
          MakeThriftProtocol(ThriftCoding::kBinary, issuing_.backend, issuing_.counters);
      return set;
    });
    ASSERT_TRUE(door_->Start().ok());
  }

  // A client's session, to be resumed.
  struct Kept {
    std::shared_ptr<SSL_SESSION> session;
    bool resumed = false;  // whether the last connection was
  };

  // Makes one call over TLS, with a certificate of `authority`, if any. Returns the id, or nullopt
  // if the server refuses the client. With `kept`, it resumes that session and stores the new one.
  std::optional<int64_t> Ask(const TlsAuthority* authority, int version = TLS1_3_VERSION,
                             Kept* kept = nullptr) {
    ssl::context context(ssl::context::tls_client);
    SSL_CTX_set_max_proto_version(context.native_handle(), version);
    context.load_verify_file(ours_->File("ca.crt"));
    context.set_verify_mode(ssl::verify_peer);
    if (authority != nullptr) {
      context.use_certificate_chain_file(authority->File("client.crt"));
      context.use_private_key_file(authority->File("client.key"), ssl::context::pem);
    }
    asio::io_context io;
    ssl::stream<asio::ip::tcp::socket> stream(io, context);
    stream.next_layer().connect({asio::ip::address_v4::loopback(), door_->port()});
    error_code error;
    if (kept != nullptr && kept->session) {
      SSL_set_session(stream.native_handle(), kept->session.get());
    }
    stream.handshake(ssl::stream_base::client, error);
    if (error) return std::nullopt;
    ThriftCalls calls;
    const std::string call = calls.GetId("slow");
    asio::write(stream, asio::buffer(call), error);
    std::string frame(4, 0);
    asio::read(stream, asio::buffer(frame), error);
    if (error) return std::nullopt;
    frame.resize(4 + static_cast<uint8_t>(frame[3]));
    asio::read(stream, asio::buffer(frame.data() + 4, frame.size() - 4), error);
    if (error) return std::nullopt;
    if (kept != nullptr) {
      kept->resumed = SSL_session_reused(stream.native_handle()) == 1;
      kept->session.reset(SSL_get1_session(stream.native_handle()), SSL_SESSION_free);
      // Programs that close in an orderly way do this; otherwise the session cannot be resumed.
      SSL_shutdown(stream.native_handle());
    }
    return calls.Answer(frame).recv_getId();
  }

  static TlsAuthority* ours_;
  static TlsAuthority* theirs_;
  Issuing issuing_;
  std::optional<FrontDoor> door_;
};

TlsAuthority* TlsTest::ours_ = nullptr;
TlsAuthority* TlsTest::theirs_ = nullptr;

TEST_F(TlsTest, ServesAnyClientWithoutAClientAuthority) {
  Open(ServerFiles());
  EXPECT_EQ(Ask(nullptr), 1);
  EXPECT_EQ(Ask(ours_), 2);
}

TEST_F(TlsTest, ServesOnlyClientsOfTheAuthority) {
  TlsFiles files = ServerFiles();
  files.client_ca = ours_->File("ca.crt");
  Open(files);
  EXPECT_EQ(Ask(ours_), 1);
  EXPECT_EQ(Ask(theirs_), std::nullopt);
  EXPECT_EQ(Ask(nullptr), std::nullopt);
  EXPECT_EQ(Ask(ours_), 2);
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return door_->totals().closed_by(CloseCause::kTls) == 2; }));
}

TEST_F(TlsTest, ClosesPlaintextAndSilentConnections) {
  issuing_.limits.half_request_ms = 300;
  Open(ServerFiles());
  RawPeer plain(door_->port()), silent(door_->port());
  ASSERT_TRUE(plain.Send(ThriftCalls().GetId("slow")));
  EXPECT_TRUE(plain.SeesClose());
  EXPECT_TRUE(silent.SeesClose());
  EXPECT_TRUE(
      Eventually(kPatience, [&] { return door_->totals().closed_by(CloseCause::kTls) == 2; }));
  EXPECT_EQ(Ask(nullptr), 1);
}

TEST_F(TlsTest, LoadsNewFilesOnReloadAndKeepsTheOldOnesIfInvalid) {
  TempDir dir;
  const TlsFiles files{dir / "crt", dir / "key", dir / "ca"};
  const auto copy = [](const std::string& from, const std::string& to) {
    ASSERT_EQ(RunToEnd({"cp", from, to}).exit_code, 0);
  };
  copy(ours_->File("server.crt"), files.cert);
  copy(ours_->File("server.key"), files.key);
  copy(theirs_->File("ca.crt"), files.client_ca);
  Open(files);
  EXPECT_EQ(Ask(ours_), std::nullopt);

  copy(ours_->File("ca.crt"), files.client_ca);
  EXPECT_EQ(Ask(ours_), std::nullopt) << "not reloaded yet";
  ASSERT_TRUE(door_->ReloadTls().ok());
  EXPECT_EQ(Ask(ours_), 1);

  ASSERT_EQ(RunToEnd({"chmod", "640", files.key}).exit_code, 0);
  EXPECT_EQ(door_->ReloadTls().code(), Code::kDenied) << "others can read the key";
  ASSERT_EQ(RunToEnd({"chmod", "600", files.key}).exit_code, 0);
  EXPECT_TRUE(door_->ReloadTls().ok());

  copy(ours_->File("client.key"), files.key);
  const Status status = door_->ReloadTls();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find(files.key), std::string::npos) << status;
  EXPECT_EQ(Ask(ours_), 2);
}

// Returns an authority's certificate that is valid from `begin_s` to `end_s` seconds from now.
std::string AuthorityPem(long begin_s, long end_s) {
  EVP_PKEY* const key = EVP_EC_gen("P-256");
  X509* const made = X509_new();
  const auto* const name = reinterpret_cast<const unsigned char*>("another");
  X509_NAME_add_entry_by_NID(X509_get_subject_name(made), NID_commonName, MBSTRING_UTF8, name, -1,
                             -1, 0);
  X509_set_issuer_name(made, X509_get_subject_name(made));
  X509_gmtime_adj(X509_getm_notBefore(made), begin_s);
  X509_gmtime_adj(X509_getm_notAfter(made), end_s);
  X509_set_pubkey(made, key);
  X509_sign(made, key, EVP_sha256());
  BIO* const out = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(out, made);
  const char* text = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(out, &text));
  std::string pem(text, size);
  BIO_free(out);
  X509_free(made);
  EVP_PKEY_free(key);
  return pem;
}

TEST_F(TlsTest, ReportsTheClientAuthorityThatExpiresFirst) {
  constexpr long kDay = 86'400;
  TempDir dir;
  TlsFiles files = ServerFiles();
  Open(files);
  EXPECT_EQ(door_->tls_expiry()->client_ca, std::nullopt) << "clients need no certificate";

  files.client_ca = dir / "ca";
  const auto use = [&](const std::string& more) {
    std::ofstream(files.client_ca) << std::ifstream(ours_->File("ca.crt")).rdbuf() << more;
  };
  use(AuthorityPem(-kDay, kDay / 4));
  Open(files);
  const auto left = [&] { return *door_->tls_expiry()->client_ca - SystemClock().Wall(); };
  EXPECT_GT(left(), Milliseconds(0));
  EXPECT_LE(left(), Milliseconds(1000 * kDay / 4));

  use(AuthorityPem(-kDay, -kDay / 2));
  EXPECT_TRUE(door_->ReloadTls().ok()) << "the other authority is valid";
  EXPECT_LT(left(), Milliseconds(0));
  EXPECT_NE(Ask(ours_), std::nullopt);
}

TEST_F(TlsTest, RefusesToLoadClientAuthoritiesOfWhichNoneIsValid) {
  constexpr long kDay = 86'400;
  TempDir dir;
  TlsFiles files = ServerFiles();
  files.client_ca = dir / "ca";
  std::ofstream(files.client_ca) << std::ifstream(ours_->File("ca.crt")).rdbuf();
  Open(files);
  const WallMs before = *door_->tls_expiry()->client_ca;
  std::ofstream(files.client_ca) << AuthorityPem(-2 * kDay, -kDay) << AuthorityPem(kDay, 2 * kDay);
  const Status status = door_->ReloadTls();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find(files.client_ca), std::string::npos) << status;
  EXPECT_EQ(door_->tls_expiry()->client_ca, before);
  EXPECT_NE(Ask(ours_), std::nullopt);
}

TEST_F(TlsTest, ServesClientsThatResumeTheirSession) {
  TlsFiles files = ServerFiles();
  files.client_ca = ours_->File("ca.crt");
  Open(files);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    Kept kept;
    EXPECT_NE(Ask(ours_, version, &kept), std::nullopt);
    EXPECT_FALSE(kept.resumed);
    for (int i = 0; i < 3; ++i) {
      EXPECT_NE(Ask(ours_, version, &kept), std::nullopt) << version;
      EXPECT_TRUE(kept.resumed) << version;
    }
  }
  EXPECT_EQ(door_->totals().closed_by(CloseCause::kTls), 0u);
}

TEST_F(TlsTest, DoesNotResumeASessionOfAnotherAuthority) {
  TempDir dir;
  TlsFiles files = ServerFiles();
  files.client_ca = dir / "ca";
  const auto use = [&](const TlsAuthority& authority) {
    ASSERT_EQ(RunToEnd({"cp", authority.File("ca.crt"), files.client_ca}).exit_code, 0);
  };
  use(*ours_);
  Open(files);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    use(*ours_);
    ASSERT_TRUE(door_->ReloadTls().ok());
    Kept kept;
    ASSERT_NE(Ask(ours_, version, &kept), std::nullopt);
    ASSERT_TRUE(door_->ReloadTls().ok());
    EXPECT_NE(Ask(ours_, version, &kept), std::nullopt) << "with its certificate again";
    EXPECT_FALSE(kept.resumed);

    use(*theirs_);
    ASSERT_TRUE(door_->ReloadTls().ok());
    EXPECT_EQ(Ask(ours_, version, &kept), std::nullopt) << version;
  }
}

TEST_F(TlsTest, DoesNotResumeASessionAfterTheCertificateExpired) {
  TlsAuthority brief("brief");
  if (!brief.SignForSeconds("client", 5)) GTEST_SKIP() << "libfaketime is not installed";
  TlsFiles files = ServerFiles();
  files.client_ca = brief.File("ca.crt");
  Open(files);
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    ASSERT_TRUE(brief.SignForSeconds("client", 5));
    Kept kept;
    ASSERT_NE(Ask(&brief, version, &kept), std::nullopt);
    const Kept first = kept;
    EXPECT_TRUE(Eventually(kPatience, [&] {
      Kept again = first;
      return Ask(&brief, version, &again) == std::nullopt;
    })) << version;
  }
}

TEST_F(TlsTest, DoesNotStartWithoutItsFiles) {
  FrontDoorOptions options;
  options.tls = TlsFiles{"/nowhere/crt", "/nowhere/key"};
  FrontDoor door(options, SystemClock(), [] { return ProtocolSet(); });
  EXPECT_EQ(door.Start().code(), Code::kNotFound);
}

}  // namespace
}  // namespace firn::front
