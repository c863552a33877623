#include "common/base/file_birth.h"

#include <fcntl.h>
#include <sys/stat.h>

namespace firn {

uint64_t BirthOf(int fd) {
  struct statx seen {};
  const bool told = statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &seen) == 0 &&
                    (seen.stx_mask & STATX_BTIME) != 0 && seen.stx_btime.tv_sec > 0;
  if (!told) return kBirthUntold;
  return static_cast<uint64_t>(seen.stx_btime.tv_sec) * 1'000'000'000 + seen.stx_btime.tv_nsec;
}

}  // namespace firn
