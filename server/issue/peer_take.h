#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace firn {

// A server's request for numbers of a tag to the owner of the tag's partition.
struct PeerTake {
  std::string secret;  // of the owner's tenure, as in its beat: 32 hexadecimal digits
  std::string tag;
  std::string form;   // FormOf the tag's definition; the owner's must be the same
  int64_t count = 0;  // set when the request is sent
  // Whether the owner uses TLS; empty: if this server does. Not sent.
  std::optional<bool> tls{};
};

}  // namespace firn
