#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/id/id_run.h"

namespace firn {

// The runs of one call, in the order in which they were issued. Allocates only for more runs than
// kInPlace, and keeps that memory when it is cleared, so a caller who keeps the object pays once.
// Thread-compatible.
class Runs {
 public:
  static constexpr size_t kInPlace = 4;

  // Puts a run at the end; one that goes on where the last one ended becomes part of it.
  void Add(IdRun run);
  void Clear();

  bool empty() const { return size() == 0; }
  size_t size() const { return runs().size(); }
  const IdRun& operator[](size_t i) const { return runs()[i]; }
  std::span<const IdRun> runs() const;
  std::span<IdRun> runs();

  // Of all runs together. Nonsense in them (a plugin's) saturates instead of overflowing.
  int64_t count() const;

  // Calls `f(id)` for every id, in order.
  template <typename F>
  void ForEach(F&& f) const {
    for (const IdRun& run : runs()) {
      for (int64_t i = 0; i < run.count; ++i) f(run.At(i));
    }
  }

 private:
  std::array<IdRun, kInPlace> few_{};
  size_t few_count_ = 0;
  std::vector<IdRun> many_;  // all of them, as soon as they are too many for few_
};

}  // namespace firn
