#include "server/front/tls.h"

#include <optional>
#include <string>

#include <boost/asio/io_context.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/write.hpp>
#include <gtest/gtest.h>

#include "tests/server/front/issuing_fixture.h"
#include "tests/server/front/raw_peer.h"
#include "tests/server/front/thrift_calls.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"

namespace firn::front {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;
using std::string_literals::operator""s;

constexpr Milliseconds kPatience{20'000};

// An authority with certificates that it has signed, made by the openssl command.
class Authority {
 public:
  explicit Authority(std::string name) : dir_(), name_(std::move(name)) {
    Openssl({"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
             "-days", "2", "-subj", "/CN=" + name_, "-keyout", File("ca.key"), "-out",
             File("ca.crt")});
  }

  // Signs a new certificate; its files are `who`.key and `who`.crt.
  void Sign(const std::string& who) {
    Openssl({"req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
             "/CN=" + who, "-keyout", File(who + ".key"), "-out", File(who + ".csr")});
    Openssl({"x509", "-req", "-in", File(who + ".csr"), "-CA", File("ca.crt"), "-CAkey",
             File("ca.key"), "-CAcreateserial", "-days", "2", "-out", File(who + ".crt")});
  }
  std::string File(const std::string& name) const { return dir_ / name; }

 private:
  static void Openssl(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "openssl");
    const Finished finished = RunToEnd(arguments);
    if (finished.exit_code != 0) Die("openssl: " + finished.err);
  }

  TempDir dir_;
  std::string name_;
};

class TlsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ours_ = new Authority("ours");
    theirs_ = new Authority("theirs");
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
      set.thrift_binary = MakeThriftProtocol(ThriftCoding::kBinary, issuing_.limits, *service_);
      return set;
    });
    ASSERT_TRUE(door_->Start().ok());
  }

  // One call over TLS, by a client that shows the certificate, if any, of `authority`. The id, or
  // nothing when the server does not want it.
  std::optional<int64_t> Ask(const Authority* authority) {
    ssl::context context(ssl::context::tls_client);
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
    return calls.Answer(frame).recv_getId();
  }

  static Authority* ours_;
  static Authority* theirs_;
  Issuing issuing_;
  std::unique_ptr<ThriftHandler> service_ = MakeThriftService(issuing_.backend, issuing_.counters);
  std::optional<FrontDoor> door_;
};

Authority* TlsTest::ours_ = nullptr;
Authority* TlsTest::theirs_ = nullptr;

TEST_F(TlsTest, ServesAnyClientWithoutAnAuthorityForThem) {
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

TEST_F(TlsTest, EndsWhoeverSpeaksWithoutEncryptionOrNotAtAll) {
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

TEST_F(TlsTest, TakesNewFilesWhenToldAndKeepsTheOldOnesWhenTheyAreBad) {
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
  EXPECT_EQ(Ask(ours_), std::nullopt) << "nobody has said so yet";
  ASSERT_TRUE(door_->ReloadTls().ok());
  EXPECT_EQ(Ask(ours_), 1);

  copy(ours_->File("client.key"), files.key);
  const Status status = door_->ReloadTls();
  EXPECT_EQ(status.code(), Code::kInvalid);
  EXPECT_NE(status.message().find(files.key), std::string::npos) << status;
  EXPECT_EQ(Ask(ours_), 2);
}

TEST_F(TlsTest, DoesNotStartWithoutItsFiles) {
  FrontDoorOptions options;
  options.tls = TlsFiles{"/nowhere/crt", "/nowhere/key"};
  FrontDoor door(options, SystemClock(), [] { return ProtocolSet(); });
  EXPECT_EQ(door.Start().code(), Code::kInvalid);
}

}  // namespace
}  // namespace firn::front
