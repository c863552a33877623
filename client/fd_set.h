#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace firn::client {

// The sockets of one engine, so that a forked child can close its copies: it finds the engine's
// other state in the middle of whatever the parent's threads were doing. Lock-free, thread-safe.
//
// Sharp edge: numbers from kFdsMax on are not remembered; a child keeps its copies of those.
class FdSet {
 public:
  static constexpr size_t kFdsMax = 1 << 16;

  // After the descriptor was opened.
  void Add(int fd) {
    Word(fd, [](auto& word, uint64_t bit) { word.fetch_or(bit); });
  }
  // Before it is closed: a fork in between leaks it in the child, and closes nothing of others.
  void Remove(int fd) {
    Word(fd, [](auto& word, uint64_t bit) { word.fetch_and(~bit); });
  }

  // Calls `close_fd(fd)` for every one, and forgets them.
  template <typename Close>
  void TakeAll(Close close_fd) {
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t bits = words_[i].exchange(0); bits != 0; bits &= bits - 1) {
        close_fd(static_cast<int>(i * 64) + __builtin_ctzll(bits));
      }
    }
  }

 private:
  template <typename Change>
  void Word(int fd, Change change) {
    const auto index = static_cast<size_t>(fd);
    if (fd < 0 || index >= kFdsMax) return;
    change(words_[index / 64], uint64_t{1} << (index % 64));
  }

  std::array<std::atomic<uint64_t>, kFdsMax / 64> words_{};
};

}  // namespace firn::client
