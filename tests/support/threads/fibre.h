#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <ucontext.h>

namespace firn {

// A function with a stack of its own that runs until it hands over to another fibre, all on one
// thread of the system: so a test decides when "threads" take turns, and their locks never block.
// The first one stands for whoever made it and has no function. Thread-compatible.
class Fibre {
 public:
  Fibre();                                    // the caller itself
  explicit Fibre(std::function<void()> run);  // starts at the first SwitchTo; must never return
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  // Goes on in `next`; returns when somebody switches back. Called by the fibre that runs.
  void SwitchTo(Fibre& next);

 private:
  static void Begin(unsigned high, unsigned low);
  void Arrived();

  ucontext_t context_{};
  std::function<void()> run_;
  std::byte* stack_ = nullptr;  // null: the system's
  // What the address sanitizer has to know of stacks.
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace firn
