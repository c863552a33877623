#pragma once

#include <string_view>

namespace firn::front {

// The page that shows a server in a browser: console.html, which the build puts into the program.
// It reads /v1/status, /metrics and /v1/explain of the door that it came from, and asks nobody
// else.
std::string_view ConsolePage();

}  // namespace firn::front
