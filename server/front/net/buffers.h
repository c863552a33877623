#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

namespace firn::front {

// Memory, and the part of it that holds bytes: what both buffers are. When it is moved the bytes
// stay where they are; what it was moved from is empty and without memory. Thread-compatible.
class Buffer {
 public:
  std::string_view view() const { return {data_.get() + begin_, size()}; }
  size_t size() const { return end_ - begin_; }
  bool empty() const { return begin_ == end_; }
  // Bytes of memory, used or not.
  size_t memory() const { return capacity_; }

  // What a buffer starts with.
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

  // Into other memory of that size, to its start.
  void Resize(size_t capacity);
  void Free() {
    data_.reset();
    begin_ = end_ = capacity_ = 0;
  }

  std::unique_ptr<char[]> data_;
  size_t begin_ = 0, end_ = 0, capacity_ = 0;
};

// Bytes on their way out: grows at its end, is taken from its front.
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

  // Room for `n` more bytes, of which Filled says how many were written.
  char* Room(size_t n) {
    if (capacity_ - end_ < n) Grow(n);
    return data_.get() + end_;
  }
  void Filled(size_t n) { end_ += n; }

  // Overwrites what was appended at `at`, counted from the front.
  void Patch(size_t at, const void* bytes, size_t n) {
    std::memcpy(data_.get() + begin_ + at, bytes, n);
  }

  // Takes back everything after the first `size` bytes.
  void Truncate(size_t size) { end_ = begin_ + size; }

  // `n` bytes at the front have been sent. An emptied buffer that once was large gives its memory
  // back.
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

// Bytes that have arrived and are not served yet.
// Sharp edge: a read that ends after the call returns takes the buffer itself (Wire::Read).
class InBuffer : public Buffer {
 public:
  // Room for the next read, at least one byte; `whole` is how long the request at the front is
  // known to be (0: unknown). Moves what is there to the start. Grows by demand, when the last
  // read filled all there was, or to `whole` when a quarter of that is there, never beyond
  // `bytes_max`; shrinks after a number of small reads.
  // Empty when `bytes_max` are waiting.
  std::span<char> MakeRoom(size_t whole, size_t bytes_max);
  // The room that was made last, or what is left of it.
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

  int small_reads_ = 0;  // in a row
};

}  // namespace firn::front
