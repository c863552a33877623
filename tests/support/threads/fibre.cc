#include "tests/support/threads/fibre.h"

#include <cstdint>
#include <utility>

#include <sys/mman.h>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

#include "common/base/status.h"

namespace firn {
namespace {

constexpr size_t kStackBytes = size_t{256} << 10;

// The fibre that switched last. The fibre that starts or resumes reports it to the sanitizer, and
// learns the place of the first fibre's stack.
Fibre* handed_over = nullptr;

}  // namespace

Fibre::Fibre() = default;

Fibre::Fibre(std::function<void()> run) : run_(std::move(run)), size_(kStackBytes) {
  void* stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack == MAP_FAILED) Die("no memory for the stack of a fibre");
  stack_ = static_cast<std::byte*>(stack);
  bottom_ = stack_;
  getcontext(&context_);
  context_.uc_stack.ss_sp = stack_;
  context_.uc_stack.ss_size = kStackBytes;
  const auto self = reinterpret_cast<uintptr_t>(this);
  makecontext(&context_, reinterpret_cast<void (*)()>(&Fibre::Begin), 2,
              static_cast<unsigned>(self >> 32), static_cast<unsigned>(self));
}

Fibre::~Fibre() {
  if (stack_ == nullptr) return;
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(stack_, kStackBytes);
#endif
  munmap(stack_, kStackBytes);
}

void Fibre::Begin(unsigned high, unsigned low) {
  auto* self = reinterpret_cast<Fibre*>(uintptr_t{high} << 32 | low);
  self->Arrived();
  self->run_();
  Die("a fibre's function returned");
}

void Fibre::SwitchTo(Fibre& next) {
  handed_over = this;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&fake_stack_, next.bottom_, next.size_);
#endif
  swapcontext(&context_, &next.context_);
  Arrived();
}

void Fibre::Arrived() {
#if defined(__SANITIZE_ADDRESS__)
  const void* bottom = nullptr;
  size_t size = 0;
  __sanitizer_finish_switch_fiber(fake_stack_, &bottom, &size);
  if (handed_over->stack_ == nullptr) {
    handed_over->bottom_ = bottom;
    handed_over->size_ = size;
  }
#endif
}

}  // namespace firn
