#pragma once

#include <string_view>

namespace firn::front {

// Files that the build puts into the program.

// console.html, the page that shows a server in a browser. It reads /v1/status, /metrics and
// /v1/explain of the door that it came from, and no other server.
std::string_view ConsolePage();

// openapi.json: every path, with its requests and answers.
std::string_view OpenApiDocument();

}  // namespace firn::front
