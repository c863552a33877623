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

void HolderBook::JudgeResumed(MachineId machine, const SlotRecord& before, const SlotRecord& after,
                              const std::optional<Node>& past) const {
  const auto issued = issued_.find(machine.value());
  if (!past || issued == issued_.end()) return;
  const Result<PastHolders> named = PastHolders::Parse(past->data);
  if (!named.ok()) throw Violation(16, "the past of a slot was written that is unreadable");
  for (const Issued& by : issued->second) {
    if (by.first < before.since || by.end > after.since) continue;
    for (const PastHolder& holder : named->holders()) {
      const bool covers = holder.first <= by.first && by.end <= holder.end;
      if (!covers || holder.pid == by.pid || holder.pid == 0) continue;
      throw Violation(16, Cat("the registry names process ", holder.pid, " for ids of process ",
                              by.pid, ", which issued them without the registry"));
    }
  }
}

}  // namespace firn
