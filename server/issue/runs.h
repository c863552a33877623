#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "common/id/id_run.h"

namespace firn {

class Runs;

// A position in runs that advances from id to id.
struct RunsCursor {
  // Calls `f(id)` for the next `most` ids. Returns whether the end was reached.
  template <typename F>
  bool ForNext(const Runs& runs, int64_t most, F&& f);

  size_t run = 0;
  int64_t at = 0;  // in that run
};

// The runs of one call, in the order in which they were issued. Allocates only for more than
// kInPlace runs, and keeps that memory when cleared. Thread-compatible.
class Runs {
 public:
  static constexpr size_t kInPlace = 4;

  // Appends a run; a run that continues the last one is merged with it.
  void Add(IdRun run);
  void Clear();

  bool empty() const { return size() == 0; }
  size_t size() const { return runs().size(); }
  const IdRun& operator[](size_t i) const { return runs()[i]; }
  std::span<const IdRun> runs() const;
  std::span<IdRun> runs();

  // Bytes of allocated memory, used or not.
  size_t memory() const { return many_.capacity() * sizeof(IdRun); }

  // Number of ids in all runs. Invalid runs (a plugin's) saturate instead of overflowing.
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
  std::vector<IdRun> many_;  // all runs, once few_ is too small
};

template <typename F>
bool RunsCursor::ForNext(const Runs& runs, int64_t most, F&& f) {
  for (const auto all = runs.runs(); run < all.size(); ++run, at = 0) {
    const int64_t end = std::min(all[run].count, at + most);
    most -= end - at;
    for (; at < end; ++at) f(all[run].At(at));
    if (at < all[run].count) return false;
  }
  return true;
}

}  // namespace firn
