#include "registry/owner.h"

#include <arpa/inet.h>

namespace firn {
namespace {

constexpr size_t kApplicationBytesMax = 100;
constexpr std::string_view kApplicationBytes =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.";

}  // namespace

Result<std::string> IpAsNumber(std::string_view ip) {
  const std::string text(ip);
  in_addr v4{};
  if (inet_pton(AF_INET, text.c_str(), &v4) == 1) return std::to_string(ntohl(v4.s_addr));
  in6_addr v6{};
  if (inet_pton(AF_INET6, text.c_str(), &v6) != 1) {
    return Invalid("\"" + text + "\" is neither an IPv4 nor an IPv6 address");
  }
  std::string digits;
  for (const unsigned char byte : v6.s6_addr) {
    digits += "0123456789abcdef"[byte >> 4];
    digits += "0123456789abcdef"[byte & 15];
  }
  return digits;
}

Result<OwnerName> OwnerName::Make(std::string_view application, uint16_t port,
                                  std::string_view ip) {
  if (application.empty() || application.size() > kApplicationBytesMax ||
      application.find_first_not_of(kApplicationBytes) != std::string_view::npos) {
    return Invalid("an application's name is 1 to 100 letters, digits, '-', '_' and '.'");
  }
  FIRN_ASSIGN(const std::string number, IpAsNumber(ip));
  const std::string name(application);
  const std::string port_text = std::to_string(port);
  return OwnerName(name + "." + port_text + "." + number, name + ":" + port_text + ":" + number);
}

}  // namespace firn
