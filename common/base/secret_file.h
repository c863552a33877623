#pragma once

#include <cstddef>
#include <string>

#include "common/base/status.h"

namespace firn {

inline constexpr size_t kSecretFileBytesMax = 4096;

// Returns the content of a file that contains a secret, such as a key or a password. Callers must
// not log it; no message of this function contains any of it.
//
// The file must be a regular file that no other user can read, otherwise kDenied. It may belong to
// this user or root with mode 0600 or less. If this user is not root, it may also belong to root
// and be readable by one of the process's groups (mode 0440 or 0640, as Kubernetes mounts Secrets).
// kNotFound if it does not exist; kInvalid if it is larger than kSecretFileBytesMax. Every failure
// names the path.
Result<std::string> ReadSecretFile(const std::string& path);

struct Credentials {
  std::string user;
  std::string password;
};
// Reads a secret file whose first line is user:password. kInvalid if it is not.
Result<Credentials> ReadCredentials(const std::string& path);

// Checks the same conditions, for callers that let a library read the file.
Status CheckSecretFile(const std::string& path);

}  // namespace firn
