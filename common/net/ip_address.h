#pragma once

#include <string>

namespace firn {

// What a host is, where it is written as an address of IPv4 or IPv6 (without brackets). A name is
// none of these, and nothing here looks one up.

bool IsIpAddress(const std::string& host);

// Whether only this very host can reach what listens there: 127.0.0.0/8, ::1, and the former
// written as IPv6.
bool IsLoopback(const std::string& host);

// 0.0.0.0 and ::, and the former written as IPv6: every address of this host, and none that leads
// to it from elsewhere.
bool IsAnyAddress(const std::string& host);

}  // namespace firn
