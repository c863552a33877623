#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"

namespace firn {

inline constexpr size_t kSecretFileBytesMax = 4096;

// The content of a file that holds a secret: a key, a password. Whoever reads it never logs it; no
// message of this function shows any of it.
//
// The file must be a regular file of this user, or of root, with no permission for group and
// others (mode 0600 or less), else kDenied: a secret that others can read is not one. kNotFound
// when it is not there; kInvalid when it is larger than kSecretFileBytesMax. Every failure names
// the path.
Result<std::string> ReadSecretFile(const std::string& path);

// Whether a secret file may be read, by the same rules, for those who leave reading to a library.
Status CheckSecretFile(const std::string& path);

}  // namespace firn
