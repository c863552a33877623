#pragma once

#include <atomic>

#include "server/issue/segment/range_source.h"

namespace firn {

// Always has numbers, and returns them at once, inside the call: for tests and benchmarks of code
// that uses a source. Thread-safe; takes no lock and does not allocate.
class EndlessSource final : public RangeSource {
 public:
  void Take(const TagDefinition&, int64_t size, TakeDone done) override {
    const int64_t begin = next_.fetch_add(size);
    done(Range{begin, begin + size});
  }
  void GiveBack(const TagDefinition&, Range, GiveBackDone done) override { done({}); }
  bool permits_no_buffer() const override { return true; }

 private:
  std::atomic<int64_t> next_{1};
};

}  // namespace firn
