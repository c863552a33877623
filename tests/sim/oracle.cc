#include "tests/sim/oracle.h"

#include <limits>

#include "tests/sim/violation.h"

namespace firn {
namespace {

constexpr int64_t kFarAway = std::numeric_limits<int64_t>::max();

}  // namespace

void IssueOracle::Record(MachineId machine, int64_t claim, const Step& step) {
  ids_ += step.count;
  const auto current = current_.find(machine.value());
  if (current == current_.end() || current->second.claim != claim) {
    return Begin(machine, claim, step);
  }
  Span& span = current->second.span->second;
  const bool rises =
      step.tick > span.last || (step.tick == span.last && step.first >= span.next_sequence);
  Require(rises, 1, "a position of a claim was issued twice, or out of order");
  Require(step.tick.count() < current->second.end, 1, "a tick was issued under two claims");
  span.last = step.tick;
  span.next_sequence = step.first + step.count;
}

void IssueOracle::Begin(MachineId machine, int64_t claim, const Step& step) {
  Spans& spans = machines_[machine.value()];
  // Looks up the span by claim, because a paused process may still use an earlier claim of the
  // machine id.
  auto own = spans.begin();
  while (own != spans.end() && own->second.claim != claim) ++own;
  const auto above = spans.upper_bound(step.tick.count());
  if (own == spans.end()) {
    if (above != spans.begin()) {
      Require(std::prev(above)->second.last < step.tick, 1, "a tick was issued under two claims");
    }
    own = spans.emplace(step.tick.count(), Span{claim, step.tick, step.first}).first;
  } else {
    // A span that begins between the claim's first tick and this one would lie inside the claim's
    // span.
    Require(std::next(own) == above, 1, "a tick was issued under two claims");
  }
  const auto next = std::next(own);
  current_[machine.value()] = {claim, own, next == spans.end() ? kFarAway : next->first};
  ids_ -= step.count;
  Record(machine, claim, step);
}

bool IssueOracle::IsFree(MachineId machine, Tick from, Tick to) const {
  const auto spans = machines_.find(machine.value());
  if (spans == machines_.end()) return true;
  for (const auto& [first, span] : spans->second) {
    if (first < to.count() && span.last >= from) return false;
  }
  return true;
}

Tick IssueOracle::Highest(MachineId machine) const {
  const auto spans = machines_.find(machine.value());
  if (spans == machines_.end()) return Tick(std::numeric_limits<int64_t>::min() / 2);
  Tick highest(std::numeric_limits<int64_t>::min() / 2);
  for (const auto& [first, span] : spans->second) highest = std::max(highest, span.last);
  return highest;
}

}  // namespace firn
