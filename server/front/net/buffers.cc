#include "server/front/net/buffers.h"

#include <algorithm>
#include <bit>

namespace firn::front {

void Buffer::Resize(size_t capacity) {
  auto data = std::make_unique_for_overwrite<char[]>(capacity);
  const size_t used = size();
  if (used != 0) std::memcpy(data.get(), view().data(), used);
  data_ = std::move(data);
  begin_ = 0;
  end_ = used;
  capacity_ = capacity;
}

void OutBuffer::Grow(size_t n) { Resize(std::bit_ceil(std::max(size() + n, kFirst))); }

std::span<char> InBuffer::MakeRoom(size_t whole, size_t bytes_max) {
  const bool was_full = capacity_ != 0 && end_ == capacity_;
  const size_t known = std::min(whole, 4 * size());  // a peer may announce too much
  size_t wanted = std::max({known, capacity_, kFirst});
  if (was_full) wanted = std::max(wanted, capacity_ * 4);
  wanted = std::min(wanted, bytes_max);
  const bool too_large = empty() && capacity_ > kFirst && small_reads_ >= kSmallReads;
  if (too_large) wanted = kFirst;
  if (wanted > capacity_ || too_large) {
    Resize(wanted);
    small_reads_ = 0;
  } else if (begin_ != 0) {
    std::memmove(data_.get(), data_.get() + begin_, end_ - begin_);
    end_ -= begin_;
    begin_ = 0;
  }
  return room();
}

}  // namespace firn::front
