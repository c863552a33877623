// Redis servers that require TLS, and the checks of a store.

#include <gmock/gmock.h>

#include "common/time/clock.h"
#include "common/time/entropy.h"
#include "server/store/redis/redis_store.h"
#include "tests/support/database/redis.h"
#include "tests/support/tcp_proxy.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class RedisTlsTest : public testing::Test {
 protected:
  // `names` of the server's certificate.
  void Serve(const std::string& names = "IP:127.0.0.1", const std::string& client_ca = {}) {
    ours_.Sign("server", names);
    Serve({.tls_cert = ours_.File("server.crt"),
           .tls_key = ours_.File("server.key"),
           .client_ca = client_ca});
  }
  void Serve(RedisOptions options) {
    auto started = Redis::Start(std::move(options));
    ASSERT_TRUE(started.ok()) << started.status();
    server_ = *std::move(started);
    place_.address.port = static_cast<uint16_t>(server_->tls_port());
  }

  std::unique_ptr<RedisStore> Open(TlsMode mode, const std::string& ca) {
    place_.tls.mode = mode;
    place_.tls.ca_file = place_.tls.verifies() ? ca : "";
    return std::make_unique<RedisStore>(RedisStore::Options{.name = "cache", .place = place_},
                                        SystemClock(), SystemEntropy(), [](const std::string&) {});
  }
  Result<Range> Take(TlsMode mode) { return Take(mode, ours_.File("ca.crt")); }
  Result<Range> Take(TlsMode mode, const std::string& ca) {
    return Open(mode, ca)->Advance(tag_, 1, 10);
  }

  void ExpectRefused(TlsMode mode, const std::string& ca, const std::string& why) {
    const Status refused = Take(mode, ca).status();
    EXPECT_EQ(refused.code(), Code::kDenied) << refused;
    EXPECT_THAT(refused.message(), AllOf(HasSubstr(place_.address.ToString() + ": TLS failed: "),
                                         HasSubstr(why), HasSubstr("tls_ca = " + ca)));
  }

  TlsAuthority ours_{"authority of databases"};
  std::unique_ptr<Redis> server_;
  RedisPlace place_{.address = {"127.0.0.1", 0}, .time_limit = Milliseconds(30'000)};
  TagDefinition tag_{.name = "order", .strategy = "segment"};
};

TEST_F(RedisTlsTest, ConnectsInEachModeToAServerThatRequiresTls) {
  Serve();
  EXPECT_EQ(Take(TlsMode::kRequire).value_or({}), (Range{1, 11}));
  EXPECT_EQ(Take(TlsMode::kVerifyCa).value_or({}), (Range{11, 21}));
  EXPECT_EQ(Take(TlsMode::kVerifyFull).value_or({}), (Range{21, 31}));
  EXPECT_FALSE(Take(TlsMode::kOff).ok());
  place_.address.port = static_cast<uint16_t>(server_->port());
  EXPECT_THAT(Take(TlsMode::kRequire).status().message(), HasSubstr("TLS"));
}

TEST_F(RedisTlsTest, RefusesACertificateOfAnotherAuthority) {
  Serve();
  const TlsAuthority other("another authority");
  ExpectRefused(TlsMode::kVerifyCa, other.File("ca.crt"), "unable to get local issuer");
  ExpectRefused(TlsMode::kVerifyFull, other.File("ca.crt"), "unable to get local issuer");
}

TEST_F(RedisTlsTest, RefusesACertificateForAnotherNameOnlyWithVerifyFull) {
  Serve("DNS:other.example");
  ExpectRefused(TlsMode::kVerifyFull, ours_.File("ca.crt"), "IP address mismatch");
  EXPECT_TRUE(Take(TlsMode::kVerifyCa).ok());
}

TEST_F(RedisTlsTest, RefusesAnExpiredCertificate) {
  if (!ours_.SignForSeconds("server", -60, "IP:127.0.0.1")) GTEST_SKIP() << "no libfaketime";
  Serve({.tls_cert = ours_.File("server.crt"), .tls_key = ours_.File("server.key")});
  ExpectRefused(TlsMode::kVerifyFull, ours_.File("ca.crt"), "certificate has expired");
  ExpectRefused(TlsMode::kVerifyCa, ours_.File("ca.crt"), "certificate has expired");
}

TEST_F(RedisTlsTest, ShowsItsCertificateToAServerThatRequiresOne) {
  Serve("IP:127.0.0.1", ours_.File("ca.crt"));
  EXPECT_FALSE(Take(TlsMode::kVerifyFull).ok());
  ours_.Sign("client");
  place_.tls.cert_file = ours_.File("client.crt");
  place_.tls.key_file = ours_.File("client.key");
  EXPECT_EQ(Take(TlsMode::kVerifyFull).value_or({}), (Range{1, 11}));
}

TEST_F(RedisTlsTest, AnAnswerThatIsLostWastesItsRangeAndAKilledServerIsFoundAgain) {
  Serve();
  TcpProxy proxy(server_->tls_port());
  place_.address.port = static_cast<uint16_t>(proxy.port());
  place_.time_limit = Milliseconds(500);
  const auto store = Open(TlsMode::kVerifyFull, ours_.File("ca.crt"));
  ASSERT_EQ(store->Advance(tag_, 1, 10).value_or({}), (Range{1, 11}));
  proxy.DropAnswers(true);
  EXPECT_EQ(store->Advance(tag_, 11, 10).code(), Code::kUnknown);
  proxy.DropAnswers(false);
  Result<Range> range = Unavailable("");
  EXPECT_TRUE(Eventually(kPatience, [&] { return (range = store->Advance(tag_, 11, 10)).ok(); }));
  EXPECT_EQ(range.value_or({}), (Range{21, 31}));
  server_->Kill();
  EXPECT_FALSE(store->Advance(tag_, 31, 10).ok());
  ASSERT_EQ(server_->Restart(), Status());
  EXPECT_TRUE(Eventually(kPatience, [&] { return (range = store->Advance(tag_, 31, 10)).ok(); }));
  EXPECT_GE(range.value_or({}).begin, 31);
}

}  // namespace
}  // namespace firn
