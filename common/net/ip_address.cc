#include "common/net/ip_address.h"

#include <cstring>
#include <optional>

#include <arpa/inet.h>
#include <netinet/in.h>

namespace firn {
namespace {

// Parses an IPv4 address, also in its IPv6 form.
std::optional<uint32_t> V4(const std::string& host) {
  in_addr v4{};
  in6_addr v6{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr);
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1 || !IN6_IS_ADDR_V4MAPPED(&v6)) return {};
  std::memcpy(&v4, v6.s6_addr + 12, sizeof v4);
  return ntohl(v4.s_addr);
}

std::optional<in6_addr> V6(const std::string& host) {
  in6_addr v6{};
  if (inet_pton(AF_INET6, host.c_str(), &v6) != 1) return {};
  return v6;
}

}  // namespace

bool IsIpAddress(const std::string& host) { return V4(host) || V6(host); }

bool IsLoopback(const std::string& host) {
  if (const auto v4 = V4(host)) return *v4 >> 24 == 127;
  const auto v6 = V6(host);
  return v6 && IN6_IS_ADDR_LOOPBACK(&*v6);
}

bool IsAnyAddress(const std::string& host) {
  if (const auto v4 = V4(host)) return *v4 == 0;
  const auto v6 = V6(host);
  return v6 && IN6_IS_ADDR_UNSPECIFIED(&*v6);
}

}  // namespace firn
