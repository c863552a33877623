#include "common/net/endpoint.h"

#include <algorithm>
#include <array>
#include <optional>

#include <arpa/inet.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/hex.h"
#include "common/base/parse.h"
#include "common/base/quote.h"
#include "common/net/address.h"

namespace firn {
namespace {

constexpr std::string_view kUnix = "unix:";
constexpr size_t kHostMax = 253;
constexpr size_t kLabelMax = 63;

using Ipv6 = std::array<unsigned char, 16>;

// Returns the address in network byte order.
template <typename Bytes>
std::optional<Bytes> ParseAddress(int family, const std::string& text) {
  Bytes bytes{};
  // inet_pton would stop at a NUL and accept the text before it.
  if (text.find('\0') != text.npos || inet_pton(family, text.c_str(), bytes.data()) != 1) {
    return std::nullopt;
  }
  return bytes;
}

std::optional<std::array<unsigned char, 4>> ParseIpv4(const std::string& text) {
  return ParseAddress<std::array<unsigned char, 4>>(AF_INET, text);
}

std::optional<Ipv6> ParseIpv6(const std::string& text) {
  return ParseAddress<Ipv6>(AF_INET6, text);
}

bool IsLabel(std::string_view label) {
  if (label.empty() || label.size() > kLabelMax) return false;
  if (label.front() == '-' || label.back() == '-') return false;
  return std::all_of(label.begin(), label.end(), [](char c) {
    return IsDigit(c) || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '-' || c == '_';
  });
}

// Refuses names whose last label is a number, because resolvers treat them as addresses.
bool IsHostName(std::string_view host) {
  if (host.size() > kHostMax) return false;
  while (true) {
    const size_t dot = host.find('.');
    const std::string_view label = host.substr(0, dot);
    if (!IsLabel(label)) return false;
    if (dot == host.npos) return !std::all_of(label.begin(), label.end(), IsDigit);
    host.remove_prefix(dot + 1);
  }
}

Result<uint16_t> ParsePort(std::string_view digits) {
  const std::optional<uint16_t> port = ParseNumber<uint16_t>(digits);
  if (!port || digits.size() > 5) return Invalid("the port is a number from 0 to 65535");
  return *port;
}

Result<std::string> ParseHost(std::string_view host) {
  std::string text(host);
  if (host.starts_with('[')) {
    const std::optional<Ipv6> address = ParseIpv6(text.substr(1, text.size() - 2));
    if (!host.ends_with(']') || !address) return Invalid("no IPv6 address in the brackets");
    char canonical[INET6_ADDRSTRLEN];
    return std::string(inet_ntop(AF_INET6, address->data(), canonical, sizeof canonical));
  }
  if (ParseIpv4(text) || IsHostName(text)) return text;
  if (ParseIpv6(text)) return Invalid("an IPv6 address needs brackets");
  return Invalid("the host is neither a name nor an address");
}

Result<Endpoint> ParseParts(std::string_view text) {
  const size_t colon = text.rfind(':');
  if (colon == text.npos) return Invalid("no port");
  FIRN_ASSIGN(std::string host, ParseHost(text.substr(0, colon)));
  FIRN_ASSIGN(const uint16_t port, ParsePort(text.substr(colon + 1)));
  return Endpoint{std::move(host), port};
}

}  // namespace

Result<Endpoint> Endpoint::Parse(std::string_view text) {
  Result<Endpoint> endpoint = ParseParts(text);
  if (!endpoint.ok()) return endpoint.status().WithContext("endpoint " + Quoted(text));
  return endpoint;
}

Result<Endpoint> Endpoint::ParseServer(std::string_view text) {
  if (!text.starts_with(kUnix)) {
    Result<Endpoint> endpoint = Parse(text);
    if (endpoint.ok() && endpoint->port == 0) {
      return Invalid(Quoted(text) + " has no port to connect to");
    }
    return endpoint;
  }
  const std::string_view path = text.substr(kUnix.size());
  if (!path.starts_with('/')) return Invalid(Quoted(text) + ": unix: requires an absolute path");
  if (!UnixAddress(path).known()) {
    return Invalid(Cat(Quoted(text), ": the path of a Unix socket has at most ", kUnixPathMax,
                       " bytes and no NUL"));
  }
  return Endpoint{std::string(path)};
}

std::string Endpoint::ToString() const {
  if (IsUnix()) return Cat(kUnix, host);
  const bool ipv6 = host.find(':') != host.npos;
  return Cat(ipv6 ? "[" + host + "]" : host, ":", port);
}

Result<std::string> IpAsNumber(const std::string& host) {
  if (const auto address = ParseIpv4(host)) {
    uint32_t number = 0;
    for (const unsigned char byte : *address) number = number << 8 | byte;
    return std::to_string(number);
  }
  const std::optional<Ipv6> address = ParseIpv6(host);
  if (!address) return Invalid(Quoted(host) + " is not an IP address");
  return ToHex(*address);
}

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace firn
