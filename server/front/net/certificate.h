#pragma once

#include <string>
#include <vector>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn::front {

// Returns the names on a client's certificate that may be given rights: the DNS names and URIs of
// its subjectAltName, or its common name where it has neither.
//
// Only a URI may contain "://": authorities check the kinds of names differently, and a common name
// must not pass for a URI. A name that is not printable UTF-8 is written with \xNN behind a word
// and a space; a line of the rights file cannot contain a space, so such a name has no rights.
std::vector<std::string> NamesOn(X509& certificate);

// Returns the time at which the certificate ends.
WallMs ExpiryOf(const X509& certificate);

// Returns the certificates of the authorities that `context` has loaded to check its clients. They
// live as long as it does.
std::vector<const X509*> AuthoritiesOf(const SSL_CTX& context);

// Fails with kInvalid, naming `file`, when the certificate has expired or is not valid yet.
Status CheckValidNow(const X509& certificate, const std::string& file);

}  // namespace firn::front
