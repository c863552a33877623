#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include "common/base/status.h"

namespace firn {

// Where a server listens or is reached: "order-1.example:7609", "10.0.0.7:7609",
// "[2001:db8::7]:7609". A value, thread-compatible. Nothing here resolves names.
struct Endpoint {
  std::string host;   // a name, an IPv4 address, or an IPv6 address without its brackets
  uint16_t port = 0;  // 0 asks the kernel for a free one, so it only makes sense to listen on

  // kInvalid names what is amiss. IPv6 addresses need brackets and come out in their canonical
  // spelling, so that equal addresses are equal here.
  static Result<Endpoint> Parse(std::string_view text);

  // Parse reads it back.
  std::string ToString() const;

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// An address as one number, as the owners of machine ids are named: IPv4 in decimal ("167772167"),
// IPv6 as 32 hexadecimal digits. kInvalid when `host` is a name.
Result<std::string> IpAsNumber(const std::string& host);

}  // namespace firn
