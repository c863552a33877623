#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// The address of a server: "order-1.example:7609", "10.0.0.7:7609",
// "[2001:db8::7]:7609". A value, thread-compatible. Does not resolve names.
struct Endpoint {
  // A host name, an IPv4 address, an IPv6 address without brackets, or the absolute path of a Unix
  // socket.
  std::string host;
  uint16_t port = 0;  // 0: any free port (for listening only), or a Unix socket

  // Parses host:port; kInvalid names the fault. IPv6 addresses require brackets and are stored in
  // canonical form, so that equal addresses compare equal.
  static Result<Endpoint> Parse(std::string_view text);

  // Parses the address of a server to connect to: host:port with a port other than 0, or
  // unix:/path of a Unix socket.
  static Result<Endpoint> ParseServer(std::string_view text);

  bool IsUnix() const { return host.starts_with('/'); }

  // Returns text that Parse accepts, or ParseServer for a Unix socket.
  std::string ToString() const;

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// Returns an address as one number, which is its form in the owners of machine ids: IPv4 in decimal
// ("167772167"), IPv6 as 32 hexadecimal digits. kInvalid if `host` is a name.
Result<std::string> IpAsNumber(const std::string& host);

// Returns this machine's host name.
std::string HostName();

}  // namespace firn
