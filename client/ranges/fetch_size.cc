#include "client/ranges/fetch_size.h"

#include <algorithm>

namespace firn {

int64_t FetchSize::Next(BootMs now) const {
  const int64_t size = std::min(size_, max_);
  return refused_until_ && now < *refused_until_ ? std::min(size, refused_max_) : size;
}

void FetchSize::Used(Milliseconds took, bool starved) {
  if (took > 2 * lasts_) {
    size_ = std::max<int64_t>(1, size_ / 2);
  } else if (took < lasts_ / 16) {
    size_ = std::min(max_, size_ * 8);
  } else if (starved || took < lasts_ / 2) {
    size_ = std::min(max_, size_ * 2);
  }
}

bool FetchSize::Refused(int64_t count, BootMs now) {
  if (count <= 1) return false;
  refused_max_ = count / 2;
  refused_until_ = now + kRefusedFor;
  return true;
}

}  // namespace firn
