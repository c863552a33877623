#include "registry/state/this_boot.h"

#include "common/base/files.h"

namespace firn {

Result<std::string> BootId() {
  const std::string path = "/proc/sys/kernel/random/boot_id";
  const Result<std::string> read = ReadRegularFile(path, 64);
  if (!read.ok()) return Unavailable(read.status().message());
  std::string id = *read;
  while (!id.empty() && id.back() == '\n') id.pop_back();
  if (id.empty()) return Unavailable(path + " is empty");
  return id;
}

}  // namespace firn
