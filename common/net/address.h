#pragma once

#include <cstring>
#include <string_view>

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "common/net/endpoint.h"

namespace firn {

// A socket address: IPv4, IPv6 or the path of a Unix socket. A value.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  bool known() const { return length > 0; }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  int family() const { return storage.ss_family; }

  friend bool operator==(const Address& a, const Address& b) {
    return a.length == b.length && std::memcmp(&a.storage, &b.storage, a.length) == 0;
  }
};

// Longest path of a Unix socket, in bytes.
inline constexpr size_t kUnixPathMax = sizeof(sockaddr_un::sun_path) - 1;

// Returns the address of a Unix socket; known() is false if the path is empty, too long or contains
// a NUL.
Address UnixAddress(std::string_view path);

// Returns the address of an endpoint whose host is an IP address or a path; unknown if it is a
// name.
Address NumericAddress(const Endpoint& endpoint);

}  // namespace firn
