#pragma once

#include <string>

namespace firn {

// Properties of a host that is an IPv4 or IPv6 address (without brackets). All functions return
// false for a name, without a lookup.

bool IsIpAddress(const std::string& host);

// Returns whether only this host can reach the address: 127.0.0.0/8, also in its IPv6 form, and
// ::1.
bool IsLoopback(const std::string& host);

// Returns whether the address is 0.0.0.0, also in its IPv6 form, or ::. A server can listen on it,
// which means all addresses of this host, but other hosts cannot connect to it.
bool IsAnyAddress(const std::string& host);

}  // namespace firn
