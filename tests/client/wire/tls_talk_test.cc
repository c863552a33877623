#include "client/wire/tls_talk.h"

#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <openssl/ssl.h>

#include "client/wire/tls_context.h"
#include "tests/support/process.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tls_authority.h"

namespace firn::client {
namespace {

// A server in memory, with one context for all of its connections.
class TlsTalkTest : public testing::Test {
 protected:
  struct Free {
    void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
    void operator()(SSL* ssl) const { SSL_free(ssl); }
  };
  struct Pair {
    std::unique_ptr<SSL, Free> server;
    std::unique_ptr<TlsTalk> client;
  };

  TlsTalkTest() {
    authority_.Sign("server", "DNS:one.example");
    EXPECT_EQ(RunToEnd({"cp", authority_.File("ca.crt"), dir_ / "ca"}).exit_code, 0);
    SSL_CTX_use_certificate_chain_file(server_.get(), authority_.File("server.crt").c_str());
    SSL_CTX_use_PrivateKey_file(server_.get(), authority_.File("server.key").c_str(),
                                SSL_FILETYPE_PEM);
  }

  Pair Connect(const std::string& address, int version) {
    Pair pair;
    pair.server.reset(SSL_new(server_.get()));
    SSL_set_max_proto_version(pair.server.get(), version);
    SSL_set_bio(pair.server.get(), BIO_new(BIO_s_mem()), BIO_new(BIO_s_mem()));
    SSL_set_accept_state(pair.server.get());
    auto talk = context_.Begin(address, "one.example");
    EXPECT_TRUE(talk.ok()) << talk.status();
    pair.client = *std::move(talk);
    for (int i = 0; i < 4; ++i) Move(pair);
    EXPECT_EQ(pair.client->state(), TlsTalk::State::kAgreed);
    return pair;
  }
  // Exchanges the bytes of both sides. The server's read drives its handshake.
  static void Move(Pair& pair) {
    std::string& sealed = pair.client->sealed();
    BIO_write(SSL_get_rbio(pair.server.get()), sealed.data(), static_cast<int>(sealed.size()));
    sealed.clear();
    char byte;
    SSL_peek(pair.server.get(), &byte, 1);
    BIO* const out = SSL_get_wbio(pair.server.get());
    std::string answer(BIO_ctrl_pending(out), '\0');
    BIO_read(out, answer.data(), static_cast<int>(answer.size()));
    pair.client->Feed(answer);
    pair.client->Read(&byte, 1);
  }

  TlsAuthority authority_{"ours"};
  TempDir dir_;
  std::unique_ptr<SSL_CTX, Free> server_{SSL_CTX_new(TLS_server_method())};
  TlsContext context_{{.ca = dir_ / "ca"}};
};

TEST_F(TlsTalkTest, ResumesWithTheServerThatIssuedTheSession) {
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const std::string one = "one:" + std::to_string(version), other = one + "0";
    EXPECT_FALSE(Connect(one, version).client->resumed());
    EXPECT_TRUE(Connect(one, version).client->resumed()) << version;
    EXPECT_TRUE(Connect(one, version).client->resumed()) << version;
    EXPECT_FALSE(Connect(other, version).client->resumed()) << version;
  }
}

TEST_F(TlsTalkTest, DoesNotResumeAfterItsFilesHaveChanged) {
  Connect("one:1", TLS1_3_VERSION);
  ASSERT_TRUE(Connect("one:1", TLS1_3_VERSION).client->resumed());
  ASSERT_EQ(
      RunToEnd({"sh", "-c", "cat " + authority_.File("ca.crt") + " >> " + (dir_ / "ca")}).exit_code,
      0);
  EXPECT_FALSE(Connect("one:1", TLS1_3_VERSION).client->resumed());
  EXPECT_TRUE(Connect("one:1", TLS1_3_VERSION).client->resumed());
}

TEST_F(TlsTalkTest, KeepsThePreviousFilesIfTheNewOnesAreInvalid) {
  Connect("one:1", TLS1_3_VERSION);
  ASSERT_EQ(RunToEnd({"sh", "-c", "echo nothing > " + (dir_ / "ca")}).exit_code, 0);
  EXPECT_EQ(context_.Load().code(), Code::kInvalid);
  EXPECT_TRUE(Connect("one:1", TLS1_3_VERSION).client->resumed());
}

TEST_F(TlsTalkTest, CarriesBytesOfAnyLengthBothWays) {
  Pair pair = Connect("one:1", TLS1_3_VERSION);
  const std::string text(100'000, 'x');
  pair.client->Seal(text);
  std::string& sealed = pair.client->sealed();
  BIO_write(SSL_get_rbio(pair.server.get()), sealed.data(), static_cast<int>(sealed.size()));
  sealed.clear();
  std::string heard;
  char bytes[5'000];
  for (int n; (n = SSL_read(pair.server.get(), bytes, sizeof bytes)) > 0;) {
    heard.append(bytes, static_cast<size_t>(n));
  }
  EXPECT_EQ(heard, text);
}

}  // namespace
}  // namespace firn::client
