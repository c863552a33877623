#include "common/base/host_name.h"

#include <array>

#include <unistd.h>

namespace firn {

std::string HostName() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

}  // namespace firn
