#pragma once

#include <string>

namespace firn {

// Returns this machine's name.
std::string HostName();

}  // namespace firn
