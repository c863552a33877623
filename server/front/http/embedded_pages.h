#pragma once

#include <span>
#include <string_view>

namespace firn::front {

// Files that are compiled into the program.

struct EmbeddedFile {
  std::string_view name;  // without a folder
  std::string_view content_type;
  std::string_view content;
};

// The files of console/: the page that shows the cluster and a server in a browser.
std::span<const EmbeddedFile> ConsoleFiles();

// openapi.json, which describes every path.
std::string_view OpenApiDocument();

}  // namespace firn::front
