#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace firn::front {

// A block of memory, a part of which holds bytes. Moving a buffer does not move its bytes, and
// leaves the source empty and without memory. Thread-compatible.
class Buffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, size()}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  // Bytes of memory, used or not.
  size_t memory() const { return capacity_; }

  // Initial size.
  static constexpr size_t kFirst = 4 * 1024;

  // Frees the memory of an empty buffer.
  void Relax() {
    if (empty()) Free();
  }

 protected:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    data_ = std::move(other.data_);
    begin_ = std::exchange(other.begin_, 0);
    end_ = std::exchange(other.end_, 0);
    capacity_ = std::exchange(other.capacity_, 0);
    return *this;
  }
  ~Buffer() = default;

  // Moves the bytes to the start of a new block of this size.
  void Resize(size_t capacity);
  void Free() {
    data_.reset();
    begin_ = end_ = capacity_ = 0;
  }

  std::unique_ptr<char[]> data_;
  size_t begin_ = 0, end_ = 0, capacity_ = 0;
};

// Bytes to be sent: appended at the end, consumed at the front.
// Sharp edge: the next Append invalidates views of it. An operation that sends from it after the
// call returns takes the buffer itself (Wire::Write).
class OutBuffer : public Buffer {
 public:
  void Append(const void* bytes, size_t n) {
    if (n == 0) return;  // there may be no memory yet
    if (capacity_ - end_ < n) Grow(n);
    std::memcpy(data_.get() + end_, bytes, n);
    end_ += n;
  }
  void Append(std::string_view bytes) { Append(bytes.data(), bytes.size()); }

  // Returns space for `n` more bytes. Filled reports how many were written there.
  char* Room(size_t n) {
    if (capacity_ - end_ < n) Grow(n);
    return data_.get() + end_;
  }
  void Filled(size_t n) { end_ += n; }

  // Overwrites bytes at offset `at`, counted from the front.
  void Patch(size_t at, const void* bytes, size_t n) {
    std::memcpy(data_.get() + begin_ + at, bytes, n);
  }

  void Truncate(size_t size) { end_ = begin_ + size; }

  // Removes the first `n` bytes, which have been sent. A large buffer that becomes empty frees its
  // memory.
  void Consume(size_t n) {
    begin_ += n;
    if (begin_ == end_) Reset();
  }
  void Clear() { Reset(); }

 private:
  static constexpr size_t kKeepMax = 128 * 1024;

  void Reset() {
    begin_ = end_ = 0;
    if (capacity_ > kKeepMax) Free();
  }
  void Grow(size_t n);
};

// Received bytes that have not been served yet.
// Sharp edge: a read that ends after the call returns takes the buffer itself (Wire::Read).
class InBuffer : public Buffer {
 public:
  // Returns space for the next read, at least one byte; empty if `bytes_max` bytes are waiting.
  // `whole` is the length of the request at the front, 0 if unknown. Moves the content to the start
  // of the block. The buffer grows when the last read filled it, or to `whole` once a quarter of
  // that has arrived, but never beyond `bytes_max`. It shrinks after a number of small reads.
  std::span<char> MakeRoom(size_t whole, size_t bytes_max);
  // The unused part of the space that MakeRoom returned last.
  std::span<char> room() { return {data_.get() + end_, capacity_ - end_}; }

  void Filled(size_t n) {
    end_ += n;
    small_reads_ = n > kFirst ? 0 : small_reads_ + 1;
  }
  void Consume(size_t n) {
    begin_ += n;
    if (begin_ == end_) begin_ = end_ = 0;
  }
  void Clear() { begin_ = end_ = 0; }

 private:
  static constexpr int kSmallReads = 64;

  int small_reads_ = 0;  // consecutive
};

}  // namespace firn::front
