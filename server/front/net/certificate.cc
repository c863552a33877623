#include "server/front/net/certificate.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <string_view>
#include <utility>

#include <openssl/x509v3.h>

#include "common/base/utf8.h"
#include "common/time/civil_time.h"

namespace firn::front {
namespace {

constexpr std::string_view kUriMark = "://";

// Common names come in several encodings, all other names in ASCII.
std::string TextOf(const ASN1_STRING* text) {
  unsigned char* utf8 = nullptr;
  const int size = ASN1_STRING_to_UTF8(&utf8, text);
  std::string name;
  if (size >= 0) {
    name.assign(reinterpret_cast<const char*>(utf8), static_cast<size_t>(size));
    OPENSSL_free(utf8);
  } else {
    name.assign(reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
                static_cast<size_t>(ASN1_STRING_length(text)));
  }
  return IsPrintableUtf8(name) ? name : "unprintable " + ToPrintableUtf8(name);
}

void AddUnlessUri(std::string name, std::vector<std::string>& names) {
  if (name.find(kUriMark) == std::string::npos) names.push_back(std::move(name));
}

WallMs TimeOf(const ASN1_TIME* time) {
  std::tm civil{};
  if (ASN1_TIME_to_tm(time, &civil) != 1) return WallMs();
  return WallMs(int64_t{timegm(&civil)} * 1000);
}

}  // namespace

std::vector<std::string> NamesOn(X509& certificate) {
  std::vector<std::string> names;
  const std::unique_ptr<GENERAL_NAMES, decltype(&GENERAL_NAMES_free)> others(
      static_cast<GENERAL_NAMES*>(
          X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)),
      GENERAL_NAMES_free);
  bool has_others = false;
  for (int i = 0; i < sk_GENERAL_NAME_num(others.get()); ++i) {
    const GENERAL_NAME* const one = sk_GENERAL_NAME_value(others.get(), i);
    if (one->type == GEN_DNS) AddUnlessUri(TextOf(one->d.dNSName), names);
    if (one->type == GEN_URI) names.push_back(TextOf(one->d.uniformResourceIdentifier));
    has_others = has_others || one->type == GEN_DNS || one->type == GEN_URI;
  }
  if (has_others) return names;
  const X509_NAME* const subject = X509_get_subject_name(&certificate);
  for (int at = -1; (at = X509_NAME_get_index_by_NID(subject, NID_commonName, at)) >= 0;) {
    AddUnlessUri(TextOf(X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at))), names);
  }
  return names;
}

WallMs ExpiryOf(const X509& certificate) { return TimeOf(X509_get0_notAfter(&certificate)); }

std::vector<const X509*> AuthoritiesOf(const SSL_CTX& context) {
  std::vector<const X509*> authorities;
  const auto* const loaded = X509_STORE_get0_objects(SSL_CTX_get_cert_store(&context));
  for (int i = 0; i < sk_X509_OBJECT_num(loaded); ++i) {
    const X509* const one = X509_OBJECT_get0_X509(sk_X509_OBJECT_value(loaded, i));
    if (one != nullptr) authorities.push_back(one);
  }
  return authorities;
}

Status CheckValidNow(const X509& certificate, const std::string& file) {
  const ASN1_TIME* const begin = X509_get0_notBefore(&certificate);
  const ASN1_TIME* const end = X509_get0_notAfter(&certificate);
  if (X509_cmp_current_time(end) <= 0) {
    return Invalid(file + ": the certificate expired at " + FormatRfc3339(TimeOf(end)));
  }
  if (X509_cmp_current_time(begin) > 0) {
    return Invalid(file + ": the certificate is not valid before " + FormatRfc3339(TimeOf(begin)));
  }
  return {};
}

}  // namespace firn::front
