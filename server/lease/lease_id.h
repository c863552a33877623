#pragma once

#include <string>
#include <string_view>

#include "common/base/status.h"
#include "common/time/entropy.h"

namespace firn {

// Draws the secret id of a lease: 128 random bits and the address of the server that granted it.
// Safe in a URL's path.
//
//   <32 hex digits>.<the server's address, each byte as two hex digits>
std::string DrawLeaseId(Entropy& entropy, std::string_view server);

// Returns the server's address in a lease's id. kInvalid if `id` is malformed.
Result<std::string> ServerOfLease(std::string_view id);

// Returns whether the text has the form of a token or turn: 32 lower-case hexadecimal digits.
bool IsLeaseToken(std::string_view text);

}  // namespace firn
