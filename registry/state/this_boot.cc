#include "registry/state/this_boot.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <fcntl.h>
#include <unistd.h>

#include "common/base/cat.h"
#include "common/base/files.h"

namespace firn {
namespace {

// linux/vmclock-abi.h: offsets, and the bit of the flags that says that there is a generation.
constexpr size_t kSequenceAt = 12, kFlagsAt = 24, kGenerationAt = 104, kVmClockBytes = 112;
constexpr uint32_t kVmClockMagic = 0x4b4c4356;  // "VCLK"
constexpr uint64_t kHasGeneration = 1 << 8;
constexpr int kClockReadsMax = 8;

uint64_t LittleEndian(std::string_view page, size_t at, size_t bytes) {
  uint64_t value = 0;
  while (bytes-- > 0) value = value << 8 | static_cast<unsigned char>(page[at + bytes]);
  return value;
}

// Returns ".<number>", or nothing if the kernel shows this process no generation. kUnavailable: it
// shows one that cannot be read now. An odd sequence number means that the hypervisor is changing
// the page.
Result<std::string> GenerationOf(const std::string& vm_clock) {
  const int opened = open(vm_clock.c_str(), O_RDONLY | O_CLOEXEC);
  if (opened < 0) {
    const bool full = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EINTR;
    return full ? Result<std::string>(Unavailable("cannot open " + vm_clock)) : std::string();
  }
  const FileHandle device(opened);
  for (int i = 0; i < kClockReadsMax; ++i) {
    std::string page(kVmClockBytes, '\0');
    const ssize_t read = pread(device.fd(), page.data(), page.size(), 0);
    if (read < 0) continue;
    const bool is_clock =
        read == static_cast<ssize_t>(kVmClockBytes) && LittleEndian(page, 0, 4) == kVmClockMagic;
    if (!is_clock) return std::string();
    if (LittleEndian(page, kSequenceAt, 4) % 2 != 0) continue;
    if ((LittleEndian(page, kFlagsAt, 8) & kHasGeneration) == 0) return std::string();
    return Cat(".", LittleEndian(page, kGenerationAt, 8));
  }
  return Unavailable("cannot read " + vm_clock);
}

}  // namespace

Result<std::string> BootId(const std::string& vm_clock) {
  const std::string path = "/proc/sys/kernel/random/boot_id";
  const Result<std::string> read = ReadRegularFile(path, 64);
  if (!read.ok()) return Unavailable(read.status().message());
  std::string id = *read;
  while (!id.empty() && id.back() == '\n') id.pop_back();
  if (id.empty()) return Unavailable(path + " is empty");
  FIRN_ASSIGN(const std::string generation, GenerationOf(vm_clock));
  return id + generation;
}

}  // namespace firn
