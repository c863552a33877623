#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/bench/histogram.h"

namespace firn {

// Returns how many of the ids repeat another one. Sorts them.
uint64_t CountDuplicates(std::vector<int64_t>& ids);

// The results of one thread of a load. Thread-compatible; the records of several threads are added
// afterwards.
class LoadRecord {
 public:
  // Keeps the first `ids_max` ids, to check them for duplicates.
  explicit LoadRecord(size_t ids_max) : ids_max_(ids_max) {}

  // Records one answer after `ns`. Keeps the ids of unmeasured answers, too, because they must not
  // be issued again either.
  void Answered(int64_t ns, const int64_t* ids, size_t count, bool measured);
  void Failed(int64_t ns, const Status& why, bool measured);

  void Add(const LoadRecord& other);

  uint64_t calls() const { return calls_; }    // measured calls, failed ones included
  uint64_t failed() const { return failed_; }  // failed calls, unmeasured ones included
  uint64_t ids() const { return ids_given_; }  // measured ids
  const Histogram& latency() const { return latency_; }
  // Returns the first failure's message, or "".
  const std::string& first_failure() const { return first_failure_; }

  size_t kept() const { return kept_.size(); }
  const std::vector<int64_t>& kept_ids() const { return kept_; }
  // Returns whether the ids of every answer were kept.
  bool kept_all() const { return kept_all_; }
  uint64_t CountDuplicates() { return firn::CountDuplicates(kept_); }

 private:
  const size_t ids_max_;
  uint64_t calls_ = 0;
  uint64_t failed_ = 0;
  uint64_t ids_given_ = 0;
  Histogram latency_;
  std::string first_failure_;
  std::vector<int64_t> kept_;
  bool kept_all_ = true;
};

}  // namespace firn
