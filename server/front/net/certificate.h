#pragma once

#include <string>
#include <vector>

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "common/base/status.h"
#include "common/base/units.h"

namespace firn::front {

// Returns the names on a client's certificate to which rights can be granted: the DNS names and
// URIs of its subjectAltName, or its common name if there are none.
//
// Only a URI may contain "://": authorities check each kind of name differently, and a common name
// must not pass for a URI. A name that is not printable UTF-8 is returned as "unprintable " and the
// name with \xNN escapes. Names in the rights file contain no space, so such a name has no rights.
std::vector<std::string> NamesOn(X509& certificate);

// Returns the time at which the certificate expires.
WallMs ExpiryOf(const X509& certificate);

// Returns the certificates of the authorities with which `context` verifies clients. They are valid
// as long as `context`.
std::vector<const X509*> AuthoritiesOf(const SSL_CTX& context);

// Returns kInvalid, naming `file`, if the certificate has expired or is not valid yet.
Status CheckValidNow(const X509& certificate, const std::string& file);

}  // namespace firn::front
