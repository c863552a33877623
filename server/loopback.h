#pragma once

#include <string>

namespace firn {

// Whether only this very host can reach what listens at `host`, a number: 127.0.0.0/8, ::1, and the
// former written as IPv6. Anything else, names among them, may be reached by others.
bool IsLoopback(const std::string& host);

}  // namespace firn
