#pragma once

#include <cstddef>
#include <new>

namespace firn::front {

// Memory for one asynchronous operation in progress, so that starting it does not allocate. Larger
// or additional operations use the heap. Used by one IO thread.
class HandlerSlot {
 public:
  HandlerSlot() = default;
  HandlerSlot(const HandlerSlot&) = delete;
  HandlerSlot& operator=(const HandlerSlot&) = delete;

  void* Take(size_t size) {
    if (used_ || size > sizeof storage_) return ::operator new(size);
    used_ = true;
    return storage_;
  }
  void Give(void* memory) {
    if (memory != storage_) return ::operator delete(memory);
    used_ = false;
  }

 private:
  // Asio needs less than 200 bytes for a socket read or write, including the handler.
  static constexpr size_t kBytes = 256;

  alignas(std::max_align_t) unsigned char storage_[kBytes];
  bool used_ = false;
};

// A standard allocator over a slot, as Asio expects of its handlers.
template <typename T>
class SlotAllocator {
 public:
  using value_type = T;

  explicit SlotAllocator(HandlerSlot& slot) : slot_(&slot) {}
  template <typename U>
  SlotAllocator(const SlotAllocator<U>& other) : slot_(other.slot_) {}  // NOLINT: as allocators do

  T* allocate(size_t n) { return static_cast<T*>(slot_->Take(n * sizeof(T))); }
  void deallocate(T* memory, size_t) { slot_->Give(memory); }

  friend bool operator==(const SlotAllocator&, const SlotAllocator&) = default;

 private:
  template <typename U>
  friend class SlotAllocator;

  HandlerSlot* slot_;
};

// A handler that is stored in a slot while its operation is in progress.
template <typename Function>
struct SlotHandler {
  using allocator_type = SlotAllocator<void>;

  allocator_type get_allocator() const { return allocator_type(*slot); }

  template <typename... Args>
  void operator()(Args&&... args) {
    function(static_cast<Args&&>(args)...);
  }

  HandlerSlot* slot;
  Function function;
};

template <typename Function>
SlotHandler<Function> InSlot(HandlerSlot& slot, Function function) {
  return {&slot, function};
}

}  // namespace firn::front
