#include "tools/firn/drill/drill_record.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "common/id/explain.h"
#include "common/id/rack_split.h"

namespace firn {
namespace {

constexpr Milliseconds kDay{86'400'000};

double Ms(const ClientLoadReport& report, double quantile) {
  return static_cast<double>(report.record.latency().Quantile(quantile)) / 1e6;
}

}  // namespace

void DrillRecord::Add(double at_s, const ClientLoadReport& report, WallMs now) {
  const LoadRecord& load = report.record;
  seconds_.push_back({.at_s = at_s,
                      .calls_a_second = report.calls_rate(),
                      .calls = load.calls(),
                      .failed = load.failed(),
                      .p50_ms = Ms(report, 0.5),
                      .p99_ms = Ms(report, 0.99),
                      .longest_ms = Ms(report, 1)});
  calls_ += load.calls();
  failed_ += load.failed();
  const std::string& why = load.first_failure();
  if (!why.empty() && (reasons_.contains(why) || reasons_.size() < kReasonsMax)) ++reasons_[why];
  const size_t room = std::min(load.kept(), ids_max_ - ids_.size());
  ids_.insert(ids_.end(), load.kept_ids().begin(),
              load.kept_ids().begin() + static_cast<ptrdiff_t>(room));
  kept_all_ &= room == load.kept() && load.kept_all();
  Judge(at_s, load.kept_ids(), now);
}

void DrillRecord::Judge(double at_s, const std::vector<int64_t>& ids, WallMs now) {
  std::map<uint32_t, int64_t> highest;  // in this second
  for (const int64_t id : ids) {
    const Result<Explanation> said = Explain(id, layout_, RackSplit::Default(layout_));
    if (!said.ok() || std::chrono::abs(said->time - now) > kDay) continue;
    ++judged_;
    const uint32_t number = said->fields.machine.value();
    const auto [machine, is_new] = machines_.try_emplace(number);
    if (is_new) machine->second.first_s = at_s;
    ++machine->second.ids;
    machine->second.last_s = at_s;
    if (!is_new && id <= machine->second.highest) ++out_of_order_;
    int64_t& high = highest.try_emplace(number, id).first->second;
    high = std::max(high, id);
  }
  for (const auto& [number, id] : highest) {
    int64_t& high = machines_.at(number).highest;
    high = std::max(high, id);
  }
}

void DrillRecord::Mark(double at_s, std::string what) {
  if (marks_.size() < kMarksMax) marks_.push_back({at_s, std::move(what)});
}

double DrillRecord::longest_ms() const {
  double longest = 0;
  for (const DrillSecond& second : seconds_) longest = std::max(longest, second.longest_ms);
  return longest;
}

}  // namespace firn
