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

// What a drill on a running cluster has seen: every id, and how calls went, second by second.

// What calls of about a second came to.
struct DrillSecond {
  double at_s = 0;  // its end, since the drill began
  double calls_a_second = 0;
  uint64_t calls = 0;
  uint64_t failed = 0;
  double p50_ms = 0, p99_ms = 0, longest_ms = 0;
};

// Something that was done to the cluster, or that the client saw of it.
struct DrillMark {
  double at_s = 0;
  std::string what;
};

// Whose ids came, as far as they tell.
struct DrillMachine {
  uint64_t ids = 0;
  int64_t highest = 0;
  double first_s = 0, last_s = 0;
};

// Thread-compatible.
class DrillRecord {
 public:
  static constexpr size_t kMarksMax = 200;
  static constexpr size_t kReasonsMax = 20;

  // Keeps the first `ids_max` ids, to look for duplicates.
  DrillRecord(const Layout& layout, size_t ids_max) : layout_(layout), ids_max_(ids_max) {}

  // The calls of one second. Every one of them began after all that were added before had ended:
  // so a machine id's ids of now lie above all that it gave before. That is judged of ids that tell
  // a time within a day of `now` by the layout, and of no others: numbers of segment tags do not
  // say whose they are.
  void Add(double at_s, const ClientLoadReport& report, WallMs now);
  // Marks beyond kMarksMax are dropped.
  void Mark(double at_s, std::string what);

  const std::vector<DrillSecond>& seconds() const { return seconds_; }
  const std::vector<DrillMark>& marks() const { return marks_; }
  const std::map<uint32_t, DrillMachine>& machines() const { return machines_; }
  // Distinct sentences, and in how many seconds each was the first failure.
  const std::map<std::string, int>& reasons() const { return reasons_; }

  uint64_t calls() const { return calls_; }
  uint64_t failed() const { return failed_; }
  uint64_t ids() const { return ids_.size(); }
  bool kept_all() const { return kept_all_; }
  uint64_t judged() const { return judged_; }  // ids whose order was looked at
  uint64_t out_of_order() const { return out_of_order_; }
  double longest_ms() const;
  // How many ids stand among the kept ones once more. Sorts them.
  uint64_t CountDuplicates();

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

// Rate and latency over time, with the marks and the failed calls in them: a picture that stands
// alone, and asks nobody for anything. Texts of strangers stay text.
std::string DrillPicture(const DrillRecord& record, const std::string& title);

}  // namespace firn
