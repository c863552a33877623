#include "tests/sim/holders/holder_book.h"

#include <algorithm>

#include "common/base/cat.h"
#include "registry/cluster/past_holders.h"
#include "tests/sim/violation.h"

namespace firn {

void HolderBook::Note(MachineId machine, int64_t pid, int64_t claim, WallMs first, WallMs end) {
  std::vector<Issued>& all = issued_[machine.value()];
  if (all.empty() || all.back().pid != pid || all.back().claim != claim) {
    all.push_back({pid, claim, first, end});
  }
  all.back().end = std::max(all.back().end, end);
}

void HolderBook::Forget(int64_t claim) {
  for (auto& [machine, all] : issued_) {
    std::erase_if(all, [claim](const Issued& by) { return by.claim == claim; });
  }
}

void HolderBook::JudgeBegun(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                            const std::optional<Node>& past, bool resumed,
                            const std::vector<OfflineHolder>& listed) const {
  const auto issued = issued_.find(machine.value());
  if (!past || issued == issued_.end()) return;
  const auto recorded = recorded_.find(machine.value());
  const Result<PastHolders> named = PastHolders::Parse(past->data);
  if (!named.ok()) throw Violation(16, "the past of a slot was written that is unreadable");
  for (const Issued& by : issued->second) {
    if (by.first < before.since || by.end > after.since) continue;
    const bool known =
        resumed || recorded->second.contains(by.pid) ||
        std::ranges::any_of(listed, [&by](const OfflineHolder& one) { return one.pid == by.pid; });
    if (!known) continue;
    const auto covers = [&by](const PastHolder& holder) {
      return holder.first <= by.first && by.end <= holder.end;
    };
    const auto right = [&](const PastHolder& holder) {
      return covers(holder) && (holder.pid == by.pid || holder.pid == 0);
    };
    // The registry may name two copies of a process, or another process that issued ids of the same
    // time.
    if (std::ranges::any_of(named->holders(), right)) continue;
    const auto issued_too = [&](const PastHolder& holder) {
      return std::ranges::any_of(issued->second, [&](const Issued& other) {
        return other.pid == holder.pid && other.first < by.end && by.first < other.end;
      });
    };
    for (const PastHolder& holder : named->holders()) {
      if (!covers(holder) || issued_too(holder)) continue;
      throw Violation(
          16, Cat("the registry names process ", holder.pid, " for ids of process ", by.pid));
    }
  }
}

}  // namespace firn
