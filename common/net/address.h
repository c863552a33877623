#pragma once

#include <cstring>

#include <netinet/in.h>
#include <sys/socket.h>

#include "common/net/endpoint.h"

namespace firn {

// A socket address of either family. A value.
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

// Returns the address of an endpoint whose host is an IP address; unknown if it is a name.
Address NumericAddress(const Endpoint& endpoint);

}  // namespace firn
