#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "tools/bench/histogram.h"

namespace firn {

// What one thread of a load has seen. Thread-compatible; records of several threads are added up
// afterwards.
class LoadRecord {
 public:
  // Keeps the first `ids_max` ids, to look for duplicates.
  explicit LoadRecord(size_t ids_max) : ids_max_(ids_max) {}

  // One answer after `ns`. Ids are kept whether it is measured or not: a duplicate is one at any
  // time.
  void Answered(int64_t ns, const int64_t* ids, size_t count, bool measured);
  void Failed(int64_t ns, const Status& why, bool measured);

  void Add(const LoadRecord& other);

  uint64_t calls() const { return calls_; }    // measured, failed ones included
  uint64_t failed() const { return failed_; }  // measured or not
  uint64_t ids() const { return ids_given_; }  // measured
  const Histogram& latency() const { return latency_; }
  // The first failure's sentence; empty when there was none.
  const std::string& first_failure() const { return first_failure_; }

  size_t kept() const { return kept_.size(); }
  const std::vector<int64_t>& kept_ids() const { return kept_; }
  // Whether the ids of every answer were kept.
  bool kept_all() const { return kept_all_; }
  // How many of the kept ids stand there once more. Sorts them.
  uint64_t CountDuplicates();

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
