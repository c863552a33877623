#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <ostream>
#include <span>
#include <vector>

namespace firn {

// Ids that follow each other at one distance: first, first + stride, ..., `count` of them.
struct Run {
  int64_t first = 0;
  int64_t count = 0;
  int64_t stride = 1;

  int64_t At(int64_t index) const { return first + index * stride; }
  int64_t last() const { return At(count - 1); }

  friend bool operator==(const Run&, const Run&) = default;
};

std::ostream& operator<<(std::ostream& out, const Run& run);

// The runs of one call, in the order in which they were issued. Allocates only for more runs than
// kInPlace, and keeps that memory when it is cleared, so a caller who keeps the object pays once.
// Thread-compatible.
class Runs {
 public:
  static constexpr size_t kInPlace = 4;

  // Puts a run at the end; one that goes on where the last one ended becomes part of it.
  void Add(Run run);
  void Clear();

  bool empty() const { return size() == 0; }
  size_t size() const { return runs().size(); }
  const Run& operator[](size_t i) const { return runs()[i]; }
  std::span<const Run> runs() const;
  std::span<Run> runs();

  // Of all runs together. Nonsense in them (a plugin's) saturates instead of overflowing.
  int64_t count() const;

  // Calls `f(id)` for every id, in order.
  template <typename F>
  void ForEach(F&& f) const {
    for (const Run& run : runs()) {
      for (int64_t i = 0; i < run.count; ++i) f(run.At(i));
    }
  }

 private:
  std::array<Run, kInPlace> few_{};
  size_t few_count_ = 0;
  std::vector<Run> many_;  // all of them, as soon as they are too many for few_
};

}  // namespace firn
