#pragma once

#include <optional>
#include <string_view>

namespace firn::front {

// What a request is for. Views into the text that it was read from.
struct HttpTarget {
  std::string_view path;       // not decoded; "*" is the server itself
  std::string_view query;      // behind the question mark
  std::string_view authority;  // of an absolute target: its host, and port; else empty
};

// Reads "/path?query", "http://host:port/path?query" (or https), and the "*" of OPTIONS. Nothing
// for whatever else RFC 9112, 3.2, does not have an origin server take. Pure functions.
std::optional<HttpTarget> ReadTarget(std::string_view text, bool options);

// Whether it is a host, with a port or without, as Host and absolute targets have it.
bool IsHostAndPort(std::string_view text);

}  // namespace firn::front
