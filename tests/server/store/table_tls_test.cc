// Databases that require TLS, and the checks of a store.

#include <gmock/gmock.h>

#include "tests/server/store/table_store_fixture.h"
#include "tests/support/tls_authority.h"

namespace firn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class TableTlsTest : public TableStoreFixture {
 protected:
  static TlsAuthority& Ours() {
    static TlsAuthority authority("authority of databases");
    return authority;
  }

  void SetUp() override {
    TableStoreFixture::SetUp();
    place_ = PlaceOf(*server_);
  }

  // `names` of the server's certificate.
  void Serve(TlsAuthority& authority, const std::string& names = "IP:127.0.0.1") {
    authority.Sign("server", names);
    ASSERT_EQ(server_->RequireTls(authority.File("server.crt"), authority.File("server.key")),
              Status());
  }

  Result<Range> Take(TlsMode mode, const std::string& ca = Ours().File("ca.crt")) {
    place_.tls.mode = mode;
    place_.tls.ca_file = place_.tls.verifies() ? ca : "";
    const auto store = Open(place_);
    Result<Range> range = store->Advance(tag_, 1, 10);
    EXPECT_FALSE(!range.ok() && store->away()) << "a ledger must not stand in: " << range.status();
    return range;
  }

  void ExpectRefused(TlsMode mode, const std::string& why,
                     const std::string& ca = Ours().File("ca.crt")) {
    const Status refused = Take(mode, ca).status();
    EXPECT_EQ(refused.code(), Code::kDenied) << refused;
    EXPECT_THAT(refused.message(), AllOf(HasSubstr(place_.address.ToString() + ": TLS failed: "),
                                         HasSubstr(why), HasSubstr("tls_ca = " + ca)));
    EXPECT_EQ(Row(), "none");
  }

  DatabasePlace place_;
};

TEST_P(TableTlsTest, RefusesAServerWithoutTlsUnlessTlsIsOnlyPreferred) {
  const std::unique_ptr<SqlServer> plain = StartServer(GetParam());
  ASSERT_NE(plain, nullptr);
  ASSERT_EQ(plain->Run(CreateTableSql(form_, kTable, GetParam())), Status());
  place_ = PlaceOf(*plain);
  EXPECT_EQ(Take(TlsMode::kPrefer).value_or({}), (Range{1, 11}));
  for (const TlsMode mode : {TlsMode::kRequire, TlsMode::kVerifyCa, TlsMode::kVerifyFull}) {
    const Status refused = Take(mode).status();
    EXPECT_EQ(refused.code(), Code::kDenied) << refused;
    EXPECT_THAT(refused.message(), HasSubstr("TLS failed: "));
  }
}

TEST_P(TableTlsTest, ConnectsInEachModeToAServerThatRequiresTls) {
  Serve(Ours());
  int64_t begin = 1;
  for (const TlsMode mode :
       {TlsMode::kPrefer, TlsMode::kRequire, TlsMode::kVerifyCa, TlsMode::kVerifyFull}) {
    EXPECT_EQ(Take(mode).value_or({}), (Range{begin, begin + 10})) << TlsModeWord(mode);
    begin += 10;
  }
  const Status refused = Take(TlsMode::kOff).status();
  EXPECT_EQ(refused.code(), Code::kDenied);
  EXPECT_THAT(refused.message(), HasSubstr("set tls in the store's section"));
}

TEST_P(TableTlsTest, RefusesACertificateOfAnotherAuthority) {
  Serve(Ours());
  TlsAuthority other("another authority");
  for (const TlsMode mode : {TlsMode::kVerifyCa, TlsMode::kVerifyFull}) {
    ExpectRefused(mode, "certificate", other.File("ca.crt"));
  }
}

// MariaDB's library of version 3.4 and later compares no name with 127.0.0.1 by itself, and always
// compares it with another address.
TEST_P(TableTlsTest, RefusesACertificateForAnotherNameOnlyWithVerifyFull) {
  Serve(Ours(), "DNS:other.example");
  for (const char* const host : {"127.0.0.1", "127.0.0.2"}) {
    place_.address.host = host;
    ExpectRefused(TlsMode::kVerifyFull, "certificate");
  }
  for (const TlsMode mode : {TlsMode::kPrefer, TlsMode::kRequire, TlsMode::kVerifyCa}) {
    const Result<Range> range = Take(mode);
    EXPECT_TRUE(range.ok()) << TlsModeWord(mode) << ": " << range.status();
  }
}

TEST_P(TableTlsTest, RefusesAnExpiredCertificate) {
  if (!Ours().SignForSeconds("expired", -60, "IP:127.0.0.1")) GTEST_SKIP() << "no libfaketime";
  ASSERT_EQ(server_->RequireTls(Ours().File("expired.crt"), Ours().File("expired.key")), Status());
  for (const TlsMode mode : {TlsMode::kVerifyCa, TlsMode::kVerifyFull}) {
    ExpectRefused(mode, "certificate");
  }
}

TEST_P(TableTlsTest, ShowsItsCertificateToAServerThatRequiresOne) {
  Ours().Sign("server", "IP:127.0.0.1");
  Ours().Sign("client");
  ASSERT_EQ(server_->RequireTls(Ours().File("server.crt"), Ours().File("server.key"),
                                Ours().File("ca.crt")),
            Status());
  EXPECT_EQ(Take(TlsMode::kVerifyFull).code(), Code::kDenied);
  place_.tls.cert_file = Ours().File("client.crt");
  place_.tls.key_file = Ours().File("client.key");
  EXPECT_EQ(Take(TlsMode::kVerifyFull).value_or({}), (Range{1, 11}));
}

TEST_P(TableTlsTest, NamesAFileThatCannotBeUsed) {
  const auto refused = [&](const std::string& ca) {
    return Take(TlsMode::kVerifyFull, ca).status().message();
  };
  EXPECT_EQ(refused("/no/such/ca.pem"), "tls_ca /no/such/ca.pem: cannot open the file");
  const std::string file = server_->credentials_file();
  EXPECT_EQ(refused(file), "tls_ca " + file + ": the file contains no PEM certificate");
}

INSTANTIATE_TEST_SUITE_P(Databases, TableTlsTest,
                         testing::Values(SqlDialect::kMysql, SqlDialect::kPostgres),
                         NameOfDatabase);

}  // namespace
}  // namespace firn
