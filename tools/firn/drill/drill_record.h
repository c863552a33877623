#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "common/base/units.h"
#include "common/id/layout.h"
#include "tools/bench/client_load.h"

namespace firn {

// Records the ids and the calls of a drill on a running cluster, second by second.

// The results of about a second's calls.
struct DrillSecond {
  double at_s = 0;  // end of this second, since the drill began
  double calls_a_second = 0;
  uint64_t calls = 0;
  uint64_t failed = 0;
  double p50_ms = 0, p99_ms = 0, longest_ms = 0;
};

// An event: a line that the user typed, or a change that the client saw.
struct DrillMark {
  double at_s = 0;
  std::string what;
};

// The ids that contain one machine id.
struct DrillMachine {
  uint64_t ids = 0;
  int64_t highest = 0;
  double first_s = 0, last_s = 0;
};

// The record of one drill. Thread-compatible.
class DrillRecord {
 public:
  static constexpr size_t kMarksMax = 200;
  static constexpr size_t kReasonsMax = 20;

  // Keeps the first `ids_max` ids, to check them for duplicates.
  DrillRecord(const Layout& layout, size_t ids_max) : layout_(layout), ids_max_(ids_max) {}

  // Adds the calls of one second, which must have begun after all earlier calls ended. Counts ids
  // that are not above the earlier ids of their machine id, but only if the id's time, by the
  // layout, is within a day of `now`: numbers of segment tags contain neither a time nor a machine
  // id.
  void Add(double at_s, const ClientLoadReport& report, WallMs now);
  // Marks beyond kMarksMax are dropped.
  void Mark(double at_s, std::string what);

  const std::vector<DrillSecond>& seconds() const { return seconds_; }
  const std::vector<DrillMark>& marks() const { return marks_; }
  const std::map<uint32_t, DrillMachine>& machines() const { return machines_; }
  // Distinct failure messages, and the number of seconds in which each was the first failure.
  const std::map<std::string, int>& reasons() const { return reasons_; }

  uint64_t calls() const { return calls_; }
  uint64_t failed() const { return failed_; }
  uint64_t ids() const { return ids_.size(); }
  bool kept_all() const { return kept_all_; }
  uint64_t judged() const { return judged_; }  // ids whose order was checked
  uint64_t out_of_order() const { return out_of_order_; }
  double longest_ms() const;
  // Sorts the kept ids.
  uint64_t CountDuplicates() { return firn::CountDuplicates(ids_); }

 private:
  void Judge(double at_s, const std::vector<int64_t>& ids, WallMs now);

  const Layout layout_;
  const size_t ids_max_;
  std::vector<DrillSecond> seconds_;
  std::vector<DrillMark> marks_;
  std::map<uint32_t, DrillMachine> machines_;
  std::map<std::string, int> reasons_;
  std::vector<int64_t> ids_;
  bool kept_all_ = true;
  uint64_t calls_ = 0, failed_ = 0, judged_ = 0, out_of_order_ = 0;
};

// Returns a plot of rate and latency over time, with marks and failed calls, as a self-contained
// SVG. Texts are escaped.
std::string DrillPicture(const DrillRecord& record, const std::string& title);

}  // namespace firn
