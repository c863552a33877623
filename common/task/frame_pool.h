#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace firn {

// Memory for the frames of tasks: reuses frames of ended tasks for new ones of the same size. Used
// by one thread. A pool must outlive its frames.
class FramePool {
 public:
  static constexpr size_t kKeptMax = 1024;  // frames

  FramePool() = default;
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;
  ~FramePool() { Forget(); }

  // Returns memory for a frame, from `pool` unless it is null. Free returns it to the same pool.
  static void* Allocate(size_t bytes, FramePool* pool) {
    Head* head = pool != nullptr ? pool->Take(bytes) : nullptr;
    if (head == nullptr) head = static_cast<Head*>(::operator new(sizeof(Head) + bytes));
    head->pool = pool;
    return head + 1;
  }
  static void Free(void* frame, size_t bytes) {
    Head* const head = static_cast<Head*>(frame) - 1;
    if (head->pool == nullptr || !head->pool->Keep(head, bytes)) ::operator delete(head);
  }

  size_t kept() const { return kept_; }

 private:
  // Precedes each frame in memory.
  struct alignas(__STDCPP_DEFAULT_NEW_ALIGNMENT__) Head {
    FramePool* pool;
    Head* next;  // of the kept frames
  };

  Head* Take(size_t bytes) {
    if (first_ == nullptr || bytes != bytes_) return nullptr;
    --kept_;
    return std::exchange(first_, first_->next);
  }
  bool Keep(Head* head, size_t bytes) {
    if (bytes != bytes_) Forget();
    if (kept_ == kKeptMax) return false;
    bytes_ = bytes;
    head->next = std::exchange(first_, head);
    ++kept_;
    return true;
  }
  void Forget() {
    while (first_ != nullptr) ::operator delete(std::exchange(first_, first_->next));
    kept_ = 0;
  }

  Head* first_ = nullptr;
  size_t bytes_ = 0;  // of each kept frame
  size_t kept_ = 0;
};

// The object of a task whose frame is from a pool.
class PooledTask {
 public:
  virtual FramePool& frames() = 0;

 protected:
  ~PooledTask() = default;
};

}  // namespace firn
