#include "server/issue/runs.h"

namespace firn {

void Runs::Add(IdRun run) {
  if (!empty()) {
    IdRun& before = runs().back();
    if (before.stride == run.stride && before.At(before.count) == run.first) {
      before.count += run.count;
      return;
    }
  }
  if (many_.empty() && few_count_ < kInPlace) {
    few_[few_count_++] = run;
    return;
  }
  if (many_.empty()) many_.assign(few_.begin(), few_.end());
  many_.push_back(run);
}

void Runs::Clear() {
  few_count_ = 0;
  many_.clear();
}

std::span<const IdRun> Runs::runs() const {
  return many_.empty() ? std::span(few_).first(few_count_) : std::span(many_);
}

std::span<IdRun> Runs::runs() {
  return many_.empty() ? std::span(few_).first(few_count_) : std::span(many_);
}

int64_t Runs::count() const {
  int64_t sum = 0;
  for (const IdRun& run : runs()) {
    if (__builtin_add_overflow(sum, run.count, &sum)) return INT64_MAX;
  }
  return sum;
}

}  // namespace firn
