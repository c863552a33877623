#include "server/front/net/certificate.h"

#include <memory>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/x509v3.h>

#include "common/time/clock.h"

namespace firn::front {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr long kDaySeconds = 86'400;

class CertificateTest : public testing::Test {
 protected:
  void SetCommonName(std::string_view name, int encoding = MBSTRING_UTF8) {
    ASSERT_EQ(
        X509_NAME_add_entry_by_NID(X509_get_subject_name(made_.get()), NID_commonName, encoding,
                                   reinterpret_cast<const unsigned char*>(name.data()),
                                   static_cast<int>(name.size()), -1, 0),
        1);
  }
  void SetOtherNames(const char* names) {
    X509_EXTENSION* const extension =
        X509V3_EXT_conf_nid(nullptr, nullptr, NID_subject_alt_name, names);
    ASSERT_NE(extension, nullptr);
    X509_add_ext(made_.get(), extension, -1);
    X509_EXTENSION_free(extension);
  }
  void SetTimes(long begin_s, long end_s) {
    X509_gmtime_adj(X509_getm_notBefore(made_.get()), begin_s);
    X509_gmtime_adj(X509_getm_notAfter(made_.get()), end_s);
  }

  std::unique_ptr<X509, decltype(&X509_free)> made_{X509_new(), X509_free};
};

TEST_F(CertificateTest, UsesTheCommonNameOnlyWithoutOtherNames) {
  SetCommonName("shop.example");
  EXPECT_THAT(NamesOn(*made_), ElementsAre("shop.example"));
  SetOtherNames("DNS:attacker.example,IP:127.0.0.1");
  EXPECT_THAT(NamesOn(*made_), ElementsAre("attacker.example"));
}

TEST_F(CertificateTest, KeepsTheCommonNameBesideAnAddress) {
  SetCommonName("shop.example");
  SetOtherNames("IP:127.0.0.1");
  EXPECT_THAT(NamesOn(*made_), ElementsAre("shop.example"));
}

TEST_F(CertificateTest, ReadsAUriFromUriNamesOnly) {
  SetCommonName("spiffe://prod/etl");
  EXPECT_THAT(NamesOn(*made_), IsEmpty());
  SetOtherNames("DNS:spiffe://prod/etl,URI:spiffe://prod/shop");
  EXPECT_THAT(NamesOn(*made_), ElementsAre("spiffe://prod/shop"));
}

TEST_F(CertificateTest, EscapesANameThatIsNotUtf8SoThatItHasNoRights) {
  SetCommonName("caf\x1B[2J", V_ASN1_T61STRING);
  EXPECT_THAT(NamesOn(*made_), ElementsAre("unprintable caf\\x1b[2J"));
}

TEST_F(CertificateTest, ReportsItsValidity) {
  SetTimes(-kDaySeconds, kDaySeconds);
  EXPECT_TRUE(CheckValidNow(*made_, "f").ok());
  const WallMs in_a_day = SystemClock().Wall() + Milliseconds(kDaySeconds * 1000);
  EXPECT_LT((in_a_day - ExpiryOf(*made_)).count(), kDaySeconds * 1000);
  SetTimes(-2 * kDaySeconds, -kDaySeconds);
  EXPECT_THAT(CheckValidNow(*made_, "f").message(),
              testing::HasSubstr("f: the certificate expired at"));
  SetTimes(kDaySeconds, 2 * kDaySeconds);
  EXPECT_THAT(CheckValidNow(*made_, "f").message(), testing::HasSubstr("is not valid before"));
}

}  // namespace
}  // namespace firn::front
