#include "tests/sim/leases/lease_oracle.h"

#include <algorithm>
#include <utility>

#include "tests/sim/violation.h"

namespace firn {
namespace {

std::string TextOf(Tick from, Tick until) {
  return std::to_string(from.count()) + " to " + std::to_string(until.count());
}

}  // namespace

size_t LeaseOracle::GroupNamed(const std::string& name) {
  const auto [entry, is_new] = group_names_.emplace(name, groups_.size());
  if (is_new) groups_.push_back({.name = name});
  return entry->second;
}

LeaseOracle::Holder LeaseOracle::Begin(MachineId machine, std::string name,
                                       const std::string& group, Tick from) {
  spans_.push_back({machine, std::move(name), GroupNamed(group), from, from});
  holders_[machine.value()].push_back(spans_.size() - 1);
  return spans_.size() - 1;
}

void LeaseOracle::Extend(Holder holder, Tick until) {
  Span& span = spans_[holder];
  if (until <= span.until) return;
  span.until = until;
  for (const Holder other : holders_[span.machine.value()]) {
    if (other != holder) Compare(span, spans_[other]);
  }
}

void LeaseOracle::Shrink(Holder holder, Tick until) {
  Span& span = spans_[holder];
  span.until = std::min(span.until, std::max(span.from, until));
}

void LeaseOracle::Compare(const Span& grown, const Span& other) const {
  const Tick from = std::max(grown.from, other.from);
  const Tick until = std::min(grown.until, other.until);
  if (from >= until) return;
  const Group& one = groups_[grown.group];
  const Group& two = groups_[other.group];
  if (grown.group == other.group && until <= one.shared_until) return;
  for (const Group* const group : {&one, &two}) {
    if (from >= group->excused_from && until <= group->excused_until) return;
  }
  throw Violation(1, "machine id " + std::to_string(grown.machine.value()) + ": " + grown.name +
                         " has ticks " + TextOf(grown.from, grown.until) + ", and " + other.name +
                         " has " + TextOf(other.from, other.until));
}

void LeaseOracle::Share(const std::string& group, Tick until) {
  Group& sharing = groups_[GroupNamed(group)];
  sharing.shared_until = std::max(sharing.shared_until, until);
  const bool excused = sharing.excused_from < sharing.shared_until;
  if (excused) sharing.excused_until = std::max(sharing.excused_until, until);
}

void LeaseOracle::Excuse(const std::string& group, Tick from, Tick until) {
  Group& excused = groups_[GroupNamed(group)];
  excused.excused_from = std::min(excused.excused_from, from);
  excused.excused_until = std::max(excused.excused_until, until);
}

void LeaseOracle::ExcuseShared(const std::string& group, Tick from) {
  Excuse(group, from, groups_[GroupNamed(group)].shared_until);
}

int64_t LeaseOracle::passed_on() const {
  return std::count_if(holders_.begin(), holders_.end(), [this](const auto& entry) {
    std::set<size_t> groups;
    for (const Holder holder : entry.second) groups.insert(spans_[holder].group);
    return groups.size() > 1;
  });
}

}  // namespace firn
