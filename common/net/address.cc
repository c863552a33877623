#include "common/net/address.h"

#include <algorithm>
#include <cstring>

#include <arpa/inet.h>

namespace firn {

Address UnixAddress(std::string_view path) {
  Address address;
  if (path.empty() || path.size() > kUnixPathMax || path.find('\0') != path.npos) return address;
  sockaddr_un at{};
  at.sun_family = AF_UNIX;
  std::copy(path.begin(), path.end(), at.sun_path);
  address.length = sizeof at;
  std::memcpy(&address.storage, &at, sizeof at);
  return address;
}

Address NumericAddress(const Endpoint& endpoint) {
  if (endpoint.IsUnix()) return UnixAddress(endpoint.host);
  Address address;
  sockaddr_in v4{};
  sockaddr_in6 v6{};
  if (inet_pton(AF_INET, endpoint.host.c_str(), &v4.sin_addr) == 1) {
    v4.sin_family = AF_INET;
    v4.sin_port = htons(endpoint.port);
    address.length = sizeof v4;
    std::memcpy(&address.storage, &v4, sizeof v4);
  } else if (inet_pton(AF_INET6, endpoint.host.c_str(), &v6.sin6_addr) == 1) {
    v6.sin6_family = AF_INET6;
    v6.sin6_port = htons(endpoint.port);
    address.length = sizeof v6;
    std::memcpy(&address.storage, &v6, sizeof v6);
  }
  return address;
}

}  // namespace firn
