#pragma once

#include <cstdint>
#include <string>

namespace firn {

// What a server sends to the owner of a tag's partition, to get numbers of the tag.
struct PeerTake {
  std::string secret;  // of the owner's tenure, as in its beat: 32 hexadecimal digits
  std::string tag;
  std::string form;  // FormOf the tag's definition; the owner's must be the same
  int64_t count;
};

}  // namespace firn
