#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include <ucontext.h>

namespace firn {

// A function with its own stack that runs until it switches to another fibre, all on one system
// thread. So a test decides when "threads" take turns, and their locks never block. The first fibre
// is its creator and has no function. Thread-compatible.
class Fibre {
 public:
  Fibre();                                    // the caller itself
  explicit Fibre(std::function<void()> run);  // starts at the first SwitchTo; must never return
  ~Fibre();
  Fibre(const Fibre&) = delete;
  Fibre& operator=(const Fibre&) = delete;

  // Resumes `next`; returns when another fibre switches back. Called by the running fibre.
  void SwitchTo(Fibre& next);

 private:
  static void Begin(unsigned high, unsigned low);
  void Arrived();

  ucontext_t context_{};
  std::function<void()> run_;
  std::byte* stack_ = nullptr;  // null: the system's
  // Stack data for the address sanitizer.
  const void* bottom_ = nullptr;
  size_t size_ = 0;
  void* fake_stack_ = nullptr;
};

}  // namespace firn
